/** The panel of tools: to write or paste one, to change it, and to switch it for a conversation. */
import { announce, byId, make, makeTool } from "./dom.js";
import { makeField, makeSheet } from "./sheet.js";
import { listTools, nameProblem, readParameters, readTool, saveTools, toolsOf } from "./tools.js";

/** @typedef {import("./tools.js").Tool} Tool */
/** @typedef {import("./chats.js").Chat} Chat */

const EXAMPLE = '{\n  "type": "object",\n  "properties": {\n    "city": { "type": "string" }\n  },\n'
  + '  "required": ["city"]\n}';

export class ToolPanel {
  #chat;
  #onSwitch;
  #list = make("ul", { class: "tools" });
  #none = make("p", { class: "muted" }, "No tool yet. A tool is a function that the model may call: its "
    + "JavaScript runs apart from this page, or you answer its calls.");
  #name = makeField("Name", make("input", { id: "tool-name", autocomplete: "off", spellcheck: "false" }));
  #description = makeField("Description", make("textarea", { id: "tool-description", rows: "2",
    placeholder: "What it does, and when to call it" }));
  #parameters = makeField("Parameters", make("textarea", { id: "tool-parameters", rows: "8",
    class: "mono", spellcheck: "false", placeholder: EXAMPLE }),
  "A JSON schema. A whole tool in the form of an API, pasted here, fills the fields above, too.");
  #code = makeField("JavaScript", make("textarea", { id: "tool-code", rows: "6", class: "mono",
    spellcheck: "false", placeholder: "return { sky: \"clear\", city: args.city };" }),
  "The body of a function of args, which may await. It sees neither this page nor the network and has 5 seconds. "
    + "Empty: you answer its calls by hand.");
  #form = make("form", { id: "tool-form", novalidate: true, hidden: true });
  #cancel = make("button", { type: "button", class: "button", onclick: () => this.#leave() }, "Cancel");
  #keep = make("button", { type: "submit", form: "tool-form", class: "button primary" }, "Save tool");
  #done = make("button", { type: "button", class: "button primary", onclick: () => this.#sheet.close() }, "Done");
  #add = make("button", { type: "button", class: "button", onclick: () => this.#edit() }, "New tool");
  /** The name of the one that is being changed. @type {string | undefined} */
  #editing;
  #sheet;

  /** chat: the one that the page shows; onSwitch: a tool of it was switched. @param {() => Chat} chat @param {() => void} onSwitch */
  constructor(chat, onSwitch) {
    this.#chat = chat;
    this.#onSwitch = onSwitch;
    this.#form.append(this.#name.element, this.#description.element, this.#parameters.element,
      this.#code.element);
    this.#sheet = makeSheet("tools", "Tools", [this.#none, this.#list, this.#form],
      [this.#add, this.#done, this.#cancel, this.#keep]);
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.#name.input.addEventListener("input", () => this.#name.say(""));
    this.#parameters.input.addEventListener("input", () => {
      this.#parameters.say("");
      this.#readWhole();
    });
    byId("tools-button").addEventListener("click", () => {
      this.#leave();
      this.#sheet.showModal();
    });
    this.count();
  }

  /** Shows how many the conversation has on. */
  count() {
    const n = toolsOf(this.#chat()).length;
    byId("tools-count").textContent = n === 0 ? "" : ` · ${n}`;
  }

  #show() {
    const tools = listTools();
    this.#none.hidden = tools.length > 0;
    this.#list.replaceChildren(...tools.map((tool) => this.#row(tool)));
    this.count();
  }

  /** @param {Tool} tool */
  #row({ name, description, code }) {
    const { toolsOff = [] } = this.#chat();
    const box = make("input", { type: "checkbox", id: `tool-on-${name}`, checked: !toolsOff.includes(name) });
    box.addEventListener("change", () => {
      const chat = this.#chat(), others = (chat.toolsOff ?? []).filter((other) => other !== name);
      chat.toolsOff = box.checked ? others : [...others, name];
      this.count();
      this.#onSwitch();
    });
    const label = make("label", { for: box.id }, make("span", { class: "tool-name" }, name),
      make("span", { class: "muted" }, description || (code.trim() ? "JavaScript" : "You answer its calls")));
    return make("li", {}, box, label, makeTool(`Change ${name}`, "edit", () => this.#edit(name)),
      makeTool(`Delete ${name}`, "trash", () => this.#remove(name)));
  }

  /** @param {string} [name] undefined: a new one */
  #edit(name) {
    const tool = listTools().find((known) => known.name === name);
    this.#editing = tool?.name;
    this.#name.input.value = tool?.name ?? "";
    this.#description.input.value = tool?.description ?? "";
    this.#parameters.input.value = tool ? JSON.stringify(tool.parameters, null, 2) : "";
    this.#code.input.value = tool?.code ?? "";
    for (const field of [this.#name, this.#parameters]) field.say("");
    this.#isEditing(true);
    this.#name.input.focus();
  }

  #leave() {
    const wasEditing = !this.#form.hidden;
    this.#isEditing(false);
    this.#show();
    if (wasEditing) this.#add.focus();
  }

  /** @param {boolean} isEditing */
  #isEditing(isEditing) {
    this.#form.hidden = this.#cancel.hidden = this.#keep.hidden = !isEditing;
    this.#list.hidden = this.#add.hidden = this.#done.hidden = isEditing;
    if (isEditing) this.#none.hidden = true;
  }

  #readWhole() {
    const whole = readTool(this.#parameters.input.value);
    if (!whole) return;
    this.#name.input.value = whole.name;
    this.#description.input.value = whole.description;
    this.#parameters.input.value = JSON.stringify(whole.parameters, null, 2);
    this.#name.say("");
    announce(`The fields of ${whole.name} are filled in.`);
  }

  #save() {
    const tools = listTools(), others = tools.filter(({ name }) => name !== this.#editing);
    const name = this.#name.input.value.trim();
    const { schema, problem = "" } = readParameters(this.#parameters.input.value);
    const said = nameProblem(name, others);
    this.#name.say(said);
    this.#parameters.say(problem);
    if (said !== "" || !schema) return (said !== "" ? this.#name : this.#parameters).input.focus();
    /** @type {Tool} */
    const tool = { name, description: this.#description.input.value.trim(), parameters: schema,
      code: this.#code.input.value };
    const at = tools.findIndex((known) => known.name === this.#editing);
    if (at < 0) tools.push(tool);
    else tools[at] = tool;
    if (!saveTools(tools)) return this.#parameters.say("The browser has no room to keep this tool.");
    announce(`${name} is saved.`);
    this.#leave();
  }

  /** @param {string} name */
  #remove(name) {
    saveTools(listTools().filter((tool) => tool.name !== name));
    announce(`${name} was deleted.`);
    this.#show();
    this.#add.focus();
  }
}

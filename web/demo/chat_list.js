/** The sheet with the conversations that are kept: to open, rename, export and delete. */
import { asMarkdown, titleOf } from "./chats.js";
import { announce, byId, make, makeTool } from "./dom.js";

/** @typedef {import("./chats.js").Chat} Chat */

/**
 * @typedef {{ current(): Chat, onOpen(chat: Chat): void, onRemoved(): void }} Events
 * current: the one that the page shows; onRemoved: it is no longer there.
 */

export class ChatList {
  #chats;
  #events;
  #dialog = /** @type {HTMLDialogElement} */ (byId("chats"));

  /** @param {import("./chats.js").Chats} chats @param {Events} events */
  constructor(chats, events) {
    this.#chats = chats;
    this.#events = events;
    byId("chats-title").tabIndex = -1;
    byId("chats-button").addEventListener("click", () => {
      this.#show();
      this.#dialog.showModal();
    });
    byId("chats-export").addEventListener("click", () =>
      download("chats.json", JSON.stringify(chats.list(), null, 2), "application/json"));
    this.#dialog.addEventListener("click", ({ target }) => {
      if (target === this.#dialog) this.#dialog.close();
    });
  }

  #show() {
    const all = this.#chats.list();
    byId("chats-empty").hidden = all.length > 0;
    byId("chats-list").replaceChildren(...all.map((chat) => this.#row(chat)));
  }

  /** @param {Chat} chat */
  #row(chat) {
    const isCurrent = chat.id === this.#events.current().id;
    const open = make("button", { type: "button", class: "open", onclick: () => {
      this.#dialog.close();
      // As it is now: an answer may have come since the list was drawn.
      if (chat.id !== this.#events.current().id) this.#events.onOpen(this.#chats.get(chat.id) ?? chat);
    }, ...(isCurrent && { "aria-current": "true" }) }, chat.title);
    return make("li", {}, open,
      makeTool(`Rename ${chat.title}`, "edit", () => this.#rename(chat, open)),
      makeTool(`Export ${chat.title}`, "download", () =>
        download(`${chat.title}.md`, asMarkdown(chat), "text/markdown")),
      makeTool(`Delete ${chat.title}`, "trash", () => this.#remove(chat)));
  }

  /** @param {Chat} chat @param {HTMLElement} button */
  #rename(chat, button) {
    const input = make("input", { "aria-label": "Title", value: chat.title });
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      if (event.key === "Escape") input.value = chat.title;
      input.blur();
    });
    input.addEventListener("blur", () => {
      const title = titleOf(input.value.trim() || chat.title);
      const current = this.#events.current();
      this.#chats.rename(chat.id, title);
      if (current.id === chat.id) current.title = title;
      this.#show();
    }, { once: true });
    button.replaceWith(input);
    input.select();
  }

  /** @param {Chat} chat */
  #remove(chat) {
    this.#chats.remove(chat.id);
    if (this.#events.current().id === chat.id) this.#events.onRemoved();
    announce(`${chat.title} was deleted.`);
    this.#show();
    byId("chats-title").focus();
  }
}

/** @param {string} name @param {string} text @param {string} type */
function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

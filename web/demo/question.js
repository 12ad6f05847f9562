/** What the visitor wrote. */
import { make, makeTool } from "./dom.js";

/** onEdit: asks it otherwise. @param {string} text @param {() => void} onEdit */
export const makeQuestion = (text, onEdit) => make("article", { class: "turn question",
  "aria-label": "You" }, make("p", {}, text),
make("div", { class: "turn-tools" }, makeTool("Edit in a new chat", "edit", onEdit)));

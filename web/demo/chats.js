/** Conversations that the browser keeps for this page. */
import { remember, remembered, rememberedValue } from "./remember.js";

/**
 * @typedef {{ role: "user" | "assistant", content: string, reasoning?: string, figures?: string,
 *             note?: string, calls?: import("./calls.js").Call[] }} Message
 * calls: of tools, answered between this message and the next.
 * @typedef {{ id: string, title: string, date: number, messages: Message[], toolsOff?: string[] }} Chat
 * date: when it was last written; toolsOff: the names of the tools that it does not use.
 */

const KEY = "wick-chats", CURRENT = "wick-current-chat";

export class Chats {
  /** An answer may still be written when its chat is deleted. @type {Set<string>} */
  #removed = new Set();

  /** The latest first. */
  list() {
    return rememberedValue(KEY, /** @type {Chat[]} */ ([]));
  }

  /** @param {string} id */
  get(id) {
    return this.list().find((chat) => chat.id === id);
  }

  /** The one that the page showed last. */
  current() {
    return this.get(remembered(CURRENT));
  }

  /** @param {string} id */
  setCurrent(id) {
    remember(CURRENT, id);
  }

  /**
   * It becomes the latest; where another tab has gone on with it, a chat of its own: both stay.
   * False: the browser has no room for it. @param {Chat} chat
   */
  save(chat) {
    if (this.#removed.has(chat.id)) return true;
    const all = this.list(), kept = all.find(({ id }) => id === chat.id);
    if (kept && kept.date !== chat.date) {
      const isCurrent = remembered(CURRENT) === chat.id;
      chat.id = newChat().id;
      if (isCurrent) this.setCurrent(chat.id);
    }
    const date = Math.max(Date.now(), chat.date + 1); // another one each time
    if (!this.#write([{ ...chat, date }, ...all.filter(({ id }) => id !== chat.id)])) return false;
    chat.date = date;
    return true;
  }

  /** @param {string} id @param {string} title */
  rename(id, title) {
    return this.#write(this.list().map((chat) => (chat.id === id ? { ...chat, title } : chat)));
  }

  /** @param {string} id */
  remove(id) {
    this.#removed.add(id);
    return this.#write(this.list().filter((chat) => chat.id !== id));
  }

  /** @param {Chat[]} chats */
  #write(chats) {
    return remember(KEY, JSON.stringify(chats));
  }
}

/** One that has not been saved; messages: those it begins with. @param {Message[]} messages @param {string[]} toolsOff @returns {Chat} */
export const newChat = (messages = [], toolsOff = []) => ({ id: `${Date.now()}-${Math.random()}`,
  title: messages[0] ? titleOf(messages[0].content) : "", date: Date.now(), messages, toolsOff });

/** Of its first question. @param {string} text */
export const titleOf = (text) => text.trim().split("\n")[0]?.slice(0, 60) || "Chat";

/** As a file that people read. @param {Chat} chat */
export const asMarkdown = ({ title, messages }) => [`# ${title}`, ...messages.map(({ role, content, calls = [] }) =>
  [`**${role === "user" ? "You" : "Model"}:** ${content}`, ...calls.map(({ name, given, result = "" }) =>
    `**${name}** ${given}: ${result}`)].join("\n\n"))].join("\n\n");

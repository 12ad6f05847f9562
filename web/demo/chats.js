/** Conversations that the browser keeps for this page. */
import { remember, remembered, rememberedValue } from "./remember.js";

/**
 * @typedef {{ role: "user" | "assistant", content: string, reasoning?: string, figures?: string,
 *             note?: string }} Message
 * @typedef {{ id: string, title: string, date: number, messages: Message[] }} Chat
 */

const KEY = "wick-chats", CURRENT = "wick-current-chat";

export class Chats {
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

  /** It becomes the latest. False: the browser has no room for it. @param {Chat} chat */
  save(chat) {
    const others = this.list().filter(({ id }) => id !== chat.id);
    return this.#write([{ ...chat, date: Date.now() }, ...others]);
  }

  /** @param {string} id @param {string} title */
  rename(id, title) {
    return this.#write(this.list().map((chat) => (chat.id === id ? { ...chat, title } : chat)));
  }

  /** @param {string} id */
  remove(id) {
    return this.#write(this.list().filter((chat) => chat.id !== id));
  }

  /** @param {Chat[]} chats */
  #write(chats) {
    return remember(KEY, JSON.stringify(chats));
  }
}

/** One that has not been saved; messages: those it begins with. @param {Message[]} messages @returns {Chat} */
export const newChat = (messages = []) => ({ id: `${Date.now()}-${Math.random()}`,
  title: messages[0] ? titleOf(messages[0].content) : "", date: Date.now(), messages });

/** Of its first question. @param {string} text */
export const titleOf = (text) => text.trim().split("\n")[0]?.slice(0, 60) || "Chat";

/** As a file that people read. @param {Chat} chat */
export const asMarkdown = ({ title, messages }) => [`# ${title}`, ...messages.map(({ role, content }) =>
  `**${role === "user" ? "You" : "Model"}:** ${content}`)].join("\n\n");

/** Tools that the visitor defines: kept by the browser, checked, and as models take them. */
import { remember, rememberedValue } from "./remember.js";

/**
 * @typedef {{ name: string, description: string, parameters: object, code: string }} Tool
 * parameters: a JSON schema; code: the body of a function of `args`; empty: the visitor answers.
 * @typedef {Record<string, any>} Json
 */

const KEY = "wick-tools";
const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];

export function listTools() {
  const kept = rememberedValue(KEY, /** @type {Tool[]} */ ([]));
  return Array.isArray(kept) ? kept : [];
}

/** False: the browser has no room for them. @param {Tool[]} tools */
export const saveTools = (tools) => remember(KEY, JSON.stringify(tools));

/** Those that a conversation has on. @param {import("./chats.js").Chat} chat */
export const toolsOf = ({ toolsOff = [] }) => listTools().filter(({ name }) => !toolsOff.includes(name));

/** In the form of OpenAI's API. @param {Tool[]} tools */
export const asFunctions = (tools) => tools.map(({ name, description, parameters }) =>
  ({ type: "function", function: { name, description, parameters } }));

/** @param {unknown} value @returns {value is Json} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** What is wrong with a schema; empty: nothing that is seen here. @param {unknown} schema @param {string} at @returns {string} */
function problemOf(schema, at) {
  if (typeof schema === "boolean") return "";
  if (!isObject(schema)) return `${at} must be a schema, which is an object.`;
  const { type, properties = {}, required = [], items, enum: values } = schema;
  if (type !== undefined && ![type].flat().every((name) => TYPES.includes(name)))
    return `The type of ${at} must be one of ${TYPES.join(", ")}.`;
  if (!isObject(properties)) return `The properties of ${at} must be an object.`;
  if (!Array.isArray(required)) return `"required" of ${at} must be a list of names.`;
  const unknown = required.find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined) return `${at} requires '${unknown}', which is none of its properties.`;
  if (values !== undefined && !(Array.isArray(values) && values.length > 0))
    return `"enum" of ${at} must be a list of values.`;
  /** @type {[unknown, string][]} */
  const inner = Object.entries(properties).map(([name, value]) => [value, `'${name}'`]);
  if (items !== undefined) inner.push([items, `the items of ${at}`]);
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const all = schema[key] ?? [];
    if (!Array.isArray(all)) return `"${key}" of ${at} must be a list of schemas.`;
    for (const one of all) inner.push([one, at]);
  }
  return inner.map(([value, name]) => problemOf(value, name)).find((said) => said !== "") ?? "";
}

/** A schema of parameters, or what is wrong with the text. @param {string} text */
export function readParameters(text) {
  let schema;
  try {
    schema = JSON.parse(text.trim() || "{}");
  } catch (reason) {
    return { problem: `This is not JSON: ${/** @type {Error} */ (reason).message}.` };
  }
  if (isObject(schema) && Object.keys(schema).length === 0) schema = { type: "object", properties: {} };
  if (!isObject(schema) || schema.type !== "object")
    return { problem: 'Parameters are an object: {"type": "object", "properties": {…}}.' };
  const problem = problemOf(schema, "this schema");
  return problem === "" ? { schema } : { problem: problem.charAt(0).toUpperCase() + problem.slice(1) };
}

/** @param {string} name @param {Tool[]} others */
export function nameProblem(name, others) {
  if (!/^[A-Za-z_][\w-]{0,63}$/.test(name))
    return "A name has up to 64 letters, digits, _ and -, and begins with a letter or _.";
  return others.some((tool) => tool.name === name) ? "Another tool has this name." : "";
}

/**
 * A whole tool in the form of an API, as people paste them; undefined: the text is none.
 * @param {string} text
 */
export function readTool(text) {
  try {
    const given = JSON.parse(text), tool = given.function ?? given;
    const parameters = tool.parameters ?? tool.input_schema ?? tool.inputSchema;
    if (typeof tool.name !== "string" || parameters === undefined) return undefined;
    return { name: tool.name, description: String(tool.description ?? ""), parameters };
  } catch {
    return undefined;
  }
}

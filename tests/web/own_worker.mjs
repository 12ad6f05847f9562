// The cases in a worker that a page has started itself: {name, given} comes, {result} or {error}
// goes.
import { cases } from "./cases.mjs";

onmessage = async ({ data: { name, given } }) => {
  try {
    postMessage({ result: await cases[name](...given) });
  } catch (error) {
    postMessage({ error: String(error) });
  }
};

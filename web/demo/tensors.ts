/** The page of tensors: an engine by the choice of the visitor, and the parts that use it. */
import { Wick } from "libwick";
import type { BackendName } from "libwick";
import { addDigits } from "./digits_part.js";
import { describeDevice } from "./device.js";
import { byId } from "./dom.js";
import { addFilter } from "./filter_part.js";
import { addTeacher } from "./teach_part.js";
import { addVoice } from "./voice_part.js";

const choice = byId<HTMLSelectElement>("backend");
let opened: { backend: string; wick: Promise<Wick> } | undefined;

/** The engine; another one where another device was chosen since. */
async function engine(): Promise<Wick> {
  const backend = choice.value;
  if (opened?.backend !== backend) {
    const before = opened?.wick;
    const open = async (): Promise<Wick> => {
      await before?.then((wick) => wick.close(), () => undefined);
      return Wick.open({ backend: backend as BackendName, tensors: true });
    };
    opened = { backend, wick: open() };
  }
  try {
    const wick = await opened.wick;
    byId("device-name").textContent = describeDevice(wick.capabilities()).name;
    return wick;
  } catch (reason) {
    opened = undefined;
    throw reason;
  }
}

addDigits(engine);
addVoice(engine);
addFilter(engine);
addTeacher(engine);

/** Buttons that run something, one at a time, and stop it where that is possible. */
import { announce, byId } from "./dom.js";
import { describeProblem, isCancelled } from "./problems.js";

const buttons: HTMLButtonElement[] = [];

/**
 * The button NAME-run begins work, and NAME-state shows how it stands; work returns what there is to
 * say in the end. prepare: what it takes of the click, as a file that is chosen; undefined: nothing.
 */
export function listen<T = void>(name: string, work: (signal: AbortSignal, given: T) => Promise<string>,
                                 { canStop = true, prepare }: {
                                   canStop?: boolean; prepare?: () => Promise<T | undefined>;
                                 } = {}): void {
  const button = byId<HTMLButtonElement>(`${name}-run`);
  const state = byId(`${button.dataset.state ?? name}-state`);
  const label = button.textContent;
  let running: AbortController | undefined;
  buttons.push(button);
  button.disabled = false;
  button.addEventListener("click", async () => {
    if (running) return running.abort();
    const given = await prepare?.();
    if (prepare && given === undefined) return;
    running = new AbortController();
    for (const other of buttons) other.disabled = other !== button || !canStop;
    if (canStop) button.textContent = "Stop";
    state.textContent = "Working …";
    try {
      state.textContent = await work(running.signal, given as T);
    } catch (reason) {
      const isStopped = isCancelled(reason) || running.signal.aborted;
      state.textContent = isStopped ? "Stopped." : describeProblem(reason).text;
    }
    announce(state.textContent ?? "");
    running = undefined;
    button.textContent = label;
    for (const other of buttons) other.disabled = false;
  });
}

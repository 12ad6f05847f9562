/** Files that the visitor chooses or drops. */

/** undefined: none was chosen. */
export function chooseFile(input: HTMLInputElement): Promise<File | undefined> {
  return new Promise((resolve) => {
    const done = (): void => {
      resolve(input.files?.[0]);
      input.value = ""; // the same one may be chosen again
    };
    input.onchange = done;
    input.oncancel = done;
    input.click();
  });
}

/** Calls onFile with a file that is dropped on the element. */
export function takeDrops(element: HTMLElement, onFile: (file: File) => void): void {
  const over = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    element.classList.add("over");
  };
  element.addEventListener("dragenter", over);
  element.addEventListener("dragover", over);
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("over");
    const file = event.dataTransfer?.files[0];
    if (file) onFile(file);
  });
}

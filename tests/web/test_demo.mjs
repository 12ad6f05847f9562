// The demo in Chromium: under its strict content security policy the small model loads and goes on
// with a text, stops, tries again, and does all of that without the server after a reload. In
// Firefox: the first and the last of these.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { startDemoServer } from "../../web/serve.mjs";
import { browsers, missing, startBrowser } from "./browser.mjs";
import { inPage, skip, startServed, textOf, withPage } from "./demo_page.mjs";
import { longOnes, withTemplate } from "./fixtures.mjs";

const long = skip ?? longOnes;

async function openStories(page) {
  await page.getByRole("button", { name: "Tiny stories" }).click();
  await page.locator("#suggestions .chip").first().waitFor();
}

/** Sends a text and waits until all of its continuation is there. */
async function write(page, text) {
  await page.getByLabel("The beginning of a text").fill(text);
  await page.keyboard.press("Enter");
  await page.locator(".turn.answer:not(.busy)").last().waitFor();
  return textOf(page);
}

async function setNumber(page, label, value) {
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel(label).fill(String(value));
  await page.getByRole("button", { name: "Done" }).click();
}

test("a text goes on, and again the same with the same seed", { skip }, async () => {
  await withPage(async ({ page }) => {
    await setNumber(page, "Longest answer", 24);
    await setNumber(page, "Seed", 7);
    await openStories(page);
    const first = await write(page, "Once upon a time");
    assert.match(first, /^Once upon a time.{20,}/s);
    assert.match(await page.locator(".turn .figures").textContent(), /24 tokens/);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".turn.answer:not(.busy)").waitFor();
    assert.equal(await page.locator(".turn").count(), 1);
    await page.getByRole("button", { name: "New chat" }).click();
    assert.equal(await page.locator(".turn").count(), 0);
    assert.equal(await write(page, "Once upon a time"), first);
  });
});

test("what is sent at once in a new chat waits for it", { skip }, async () => {
  await withPage(async ({ page }) => {
    await setNumber(page, "Longest answer", 24);
    await openStories(page);
    await write(page, "Once upon a time");
    await page.evaluate(async () => {
      const prompt = document.getElementById("prompt");
      document.getElementById("new-chat").click();
      await new Promise((resolve) => setTimeout(resolve));
      prompt.value = "The dog";
      prompt.form.requestSubmit();
    });
    await page.locator(".turn.answer:not(.busy)").filter({ hasText: /The dog.{20,}/s }).waitFor();
  });
});

test("a prompt that is too long is no part of what follows", { skip: long }, async () => {
  await withPage(async ({ page }) => {
    await setNumber(page, "Longest answer", 8);
    await openStories(page);
    await write(page, "x".repeat(5000));
    assert.match(await page.locator(".turn .notice").textContent(), /the context holds 512/);
    await write(page, "Once upon a time");
    await page.locator(".turn.answer:not(.busy)").nth(1).waitFor();
    assert.match(await textOf(page), /^Once upon a time.{5,}/s);
  });
});

test("Escape stops, and what was written stays", { skip }, async () => {
  await withPage(async ({ page }) => {
    await setNumber(page, "Longest answer", 0);
    await setNumber(page, "Context length", 16384);
    await openStories(page);
    await page.locator("#suggestions .chip").first().click();
    await page.locator(".turn.busy .body p").filter({ hasText: /.{60,}/ }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".turn.answer:not(.busy)").waitFor();
    assert.match(await textOf(page), /.{60,}/s);
    const figures = await page.locator("#figures", { hasText: "context" }).textContent();
    const [, used] = /context ([\d,]+) of 16,384/.exec(figures);
    assert.ok(Number(used.replace(",", "")) < 8000, figures);
  });
});

test("a file that is no model is refused with what to do", { skip }, async () => {
  await withPage(async ({ page }) => {
    await page.locator("#file").setInputFiles(
      { name: "notes.gguf", mimeType: "text/plain", buffer: Buffer.from("not a model") });
    await page.getByRole("heading", { name: "notes could not be opened" }).waitFor();
    assert.match(await page.locator("#loading-text").textContent(), /GGUF/);
    await page.getByRole("button", { name: "Choose another" }).click();
    await page.getByRole("button", { name: "Tiny stories" }).waitFor();
  });
});

test("a model that does not fit is loaded where the visitor insists", { skip: long }, async () => {
  await withPage(async ({ page }) => {
    await page.addInitScript(() =>
      Object.defineProperty(navigator, "deviceMemory", { value: 1e-6 }));
    await page.reload();
    await page.getByRole("button", { name: "Tiny stories" }).click();
    await page.locator("#loading-text", { hasText: "may be too large for this device" }).waitFor();
    await page.getByRole("button", { name: "all the same" }).click();
    await page.locator("#suggestions .chip").first().waitFor();
    // Other settings open it again, and nobody is asked.
    const reopens = page.evaluate(() => new Promise((resolve) => {
      new MutationObserver(() => resolve()).observe(document.getElementById("loading-title"),
                                                    { childList: true });
    }));
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("Arithmetic").selectOption("exact");
    await page.getByRole("button", { name: "Done" }).click();
    await reopens;
    assert.match(await write(page, "Once upon a time"), /^Once upon a time.{20,}/s);
  });
});

test("a percent sign in a link is one, and text that is dropped goes where it was dropped",
     { skip: long }, async () => {
  await withPage(async ({ page, server }) => {
    const dropped = (kind) => page.evaluate((isFile) => {
      const dataTransfer = new DataTransfer();
      if (isFile) dataTransfer.items.add(new File([], "none.txt"));
      else dataTransfer.setData("text/plain", "text");
      const drop = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer });
      return !document.getElementById("link").dispatchEvent(drop);
    }, kind === "file");
    assert.equal(await dropped("text"), false);
    await page.route("**/*zz.gguf", (route) => route.fulfill({ body: "no model" }));
    await openLink(page, `${server.base}100%zz.gguf`);
    await page.getByRole("heading", { name: "100%zz could not be opened" }).waitFor();
    await page.getByRole("button", { name: "Choose another" }).click();
    assert.equal(await dropped("file"), true);
    await page.getByRole("heading", { name: "none.txt could not be opened" }).waitFor();
  });
});

const focused = (page) => page.evaluate(() => document.activeElement.id);

async function openLink(page, url) {
  await page.getByLabel("Link, hf:OWNER/REPO").fill(url);
  await page.keyboard.press("Enter");
}

test("a link that never answers is given up", { skip: long }, async () => {
  await withPage(async ({ page, server }) => {
    await openStories(page);
    await page.route("**/silent.gguf", () => undefined);
    await page.locator("#model-button").click();
    await openLink(page, `${server.base}silent.gguf`);
    await page.getByRole("heading", { name: "Looking at silent" }).waitFor();
    assert.ok(await page.locator("#model-button").isHidden());
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("heading", { name: "silent was stopped" }).waitFor();
    await page.getByRole("button", { name: "Choose another", exact: true }).click();
    assert.equal(await focused(page), "main");
    await page.getByRole("button", { name: "Back to the chat" }).click();
    assert.equal(await focused(page), "prompt");
  });
});

test("a download is told as one, and the keyboard stays where one goes on", { skip }, async () => {
  await withPage(async ({ page }) => {
    await page.evaluate(() => {
      globalThis.said = [];
      new MutationObserver(([{ target }]) => globalThis.said.push(target.textContent))
        .observe(document.getElementById("status"), { childList: true });
    });
    await openStories(page);
    const said = await page.evaluate(() => globalThis.said);
    // None: it was there at once.
    const told = said.filter((text) => text.startsWith("Downloading"));
    assert.ok(told.length <= 1, said.join("\n"));
    await page.locator("#suggestions .chip").first().click();
    assert.ok(["stop", "prompt"].includes(await focused(page)));
    await page.locator(".turn.answer:not(.busy)").waitFor();
    assert.equal(await focused(page), "prompt");
  });
});

test("what was opened is kept, and can be deleted", { skip }, async () => {
  await withPage(async ({ page }) => {
    await openStories(page);
    await page.locator("#model-button").click();
    await page.getByRole("button", { name: "Delete stories260K" }).click();
    await page.locator("#kept").waitFor({ state: "hidden" });
  });
});

test("after a reload it works without the server", { skip }, async () => {
  await withPage(async ({ page, server, complaints }) => {
    await page.evaluate(async () => {
      await navigator.serviceWorker.ready;
      if (!navigator.serviceWorker.controller)
        await new Promise((resolve) =>
          navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
    });
    await server.close();
    await page.reload();
    assert.equal(await page.evaluate(() => crossOriginIsolated), true); // it may use threads
    await setNumber(page, "Longest answer", 8);
    await openStories(page);
    assert.match(await write(page, "One day"), /^One day.{5,}/s);
    // The browser says that it cannot ask for a newer version.
    complaints.splice(0, complaints.length,
                      ...complaints.filter((text) => !/ERR_CONNECTION_REFUSED|sw\.js/.test(text)));
  });
});

test("chats are kept, and the last one comes back with its model", { skip }, async () => {
  await withPage(async ({ page }) => {
    await setNumber(page, "Longest answer", 12);
    await openStories(page);
    const first = await write(page, "Once upon a time");
    await page.getByRole("button", { name: "New chat" }).click();
    await page.locator(".turn").waitFor({ state: "detached" });
    const second = await write(page, "The dog");
    await page.reload();
    await page.locator(".turn .body", { hasText: second }).waitFor();
    assert.match(await page.locator(".turn .figures").textContent(), /12 tokens/);
    const chats = page.locator(".chats .open");
    await page.getByRole("button", { name: "Chats" }).click();
    assert.deepEqual(await chats.allTextContents(), ["The dog", "Once upon a time"]);
    await page.getByRole("button", { name: "Rename Once upon a time" }).click();
    await page.getByLabel("Title").fill("Times");
    await page.keyboard.press("Enter");
    await chats.getByText("Times").click();
    await page.locator(".turn .body", { hasText: first }).waitFor();
    await page.getByRole("button", { name: "Chats" }).click();
    await page.getByRole("button", { name: "Delete Times" }).click();
    await page.locator(".turn").waitFor({ state: "detached" });
    assert.deepEqual(await chats.allTextContents(), ["The dog"]);
  });
});

test("a question is asked otherwise in a new chat, with a file, and answered by a schema",
     { skip }, async () => {
  await withPage(async ({ page }) => {
    const template = "{% for m in messages %}{{ m.content }}{% endfor %}";
    await page.locator("#file").setInputFiles({ name: "tales.gguf", mimeType: "",
      buffer: withTemplate(template) });
    const message = page.getByLabel("Your message"), ends = page.locator(".turn.answer:not(.busy)");
    await page.getByRole("heading", { name: "Ask tales" }).waitFor();
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("JSON schema").fill('{ "enum": ["red", "blue"] }');
    await page.evaluate(() => { // In one task: before the event of the closed dialog.
      document.querySelector("#settings button.primary").click();
      document.getElementById("prompt").value = "A colour?";
      document.getElementById("composer").requestSubmit();
    });
    await ends.waitFor();
    assert.match(await textOf(page), /^"(red|blue)"$/);
    await page.getByRole("button", { name: "Edit in a new chat" }).click();
    await page.locator(".turn").first().waitFor({ state: "detached" });
    assert.equal(await message.inputValue(), "A colour?");
    await page.evaluate(() => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["red is warm\n"], "notes.txt"));
      document.body.dispatchEvent(
        new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
    });
    await page.waitForFunction(() => document.getElementById("prompt").value.includes("warm"));
    assert.equal(await message.inputValue(), "A colour?\n\nnotes.txt:\n```\nred is warm\n```\n\n");
    await message.press("Enter");
    await ends.waitFor();
    await page.getByRole("button", { name: "Chats" }).click();
    assert.deepEqual(await page.locator(".chats .open").allTextContents(), ["A colour?", "A colour?"]);
  });
});

test("words are searched for on huggingface.co", { skip: long }, async () => {
  await withPage(async ({ page, complaints }) => {
    const find = async (words) => {
      await page.getByLabel("words to search for").fill(words);
      await page.getByRole("button", { name: "Find" }).click();
    };
    const asked = [];
    await page.route("https://huggingface.co/api/models**", (route) => {
      const url = new URL(route.request().url());
      asked.push(url.searchParams.get("search"));
      if (url.pathname !== "/api/models") return route.fulfill({ status: 404, body: "{}" });
      const found = asked.at(-1) === "none" ? [] : [{ id: "some/Tiny-GGUF", downloads: 1200 }];
      return route.fulfill({ json: found });
    });
    await find("none");
    await page.getByText('No model in GGUF is called "none" there.').waitFor();
    await find("tiny");
    await page.getByText("1,200 downloads a month").waitFor();
    await page.getByRole("button", { name: "Open some/Tiny-GGUF" }).click();
    await page.getByRole("heading", { name: "Tiny-GGUF could not be opened" }).waitFor();
    assert.deepEqual(asked.slice(0, 2), ["none", "tiny"]);
    complaints.splice(0, complaints.length,
                      ...complaints.filter((text) => !/status of 404/.test(text)));
  });
});

test("nothing is wider than a phone of 360 pixels", { skip }, async () => {
  await withPage(async ({ page }) => {
    const widest = () => page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(await widest(), 360);
    const spilled = await page.locator(".card").last().evaluate((card) => {
      const name = card.querySelector(".card-name"), { textContent } = name;
      name.textContent = "word".repeat(40);
      const width = card.scrollWidth - card.clientWidth;
      name.textContent = textContent;
      return width;
    });
    assert.equal(spilled, 0);
    await openStories(page);
    assert.equal(await widest(), 360);
    await page.getByRole("button", { name: "Settings" }).click();
    assert.equal(await widest(), 360);
  }, { viewport: { width: 360, height: 740 } });
});

const MARKUP = [
  ["one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"],
  ["**a** and *b*, 2 * 3 * 4", "<p><strong>a</strong> and <em>b</em>, 2 * 3 * 4</p>"],
  ["# Title\ntext", "<h3>Title</h3><p>text</p>"],
  ["- a\n- b `c`\n\n1. d\n2. e",
    "<ul><li>a</li><li>b <code>c</code></li></ul><ol start=\"1\"><li>d</li><li>e</li></ol>"],
  ["<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>"],
  ["[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"],
  ["[x](https://a.example/b_(c)) https://d.example.",
    "<p><a href=\"https://a.example/b_(c)\" target=\"_blank\" rel=\"noopener noreferrer\">x</a> "
    + "<a href=\"https://d.example\" target=\"_blank\" rel=\"noopener noreferrer\">https://d.example</a>.</p>"],
  ["1. a\n   - b\n     - c\n2. d", "<ol start=\"1\"><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li>"
    + "<li>d</li></ol>"],
  ["- a\n\n  b\n\nc", "<ul><li>a<p>b</p></li></ul><p>c</p>"],
  ["> a\n> - b", "<blockquote><p>a</p><ul><li>b</li></ul></blockquote>"],
  ["a | b", "<p>a | b</p>"],
  ["snake_case_name and _em_, \\*not\\*", "<p>snake_case_name and <em>em</em>, *not*</p>"],
  ["***a*** **b *c***", "<p><strong><em>a</em></strong> <strong>b <em>c</em></strong></p>"],
  ["**`**kwargs`**: from *args and **kwargs",
    "<p><strong><code>**kwargs</code></strong>: from *args and **kwargs</p>"],
  ["```js``` is short\n\nrest", "<p><code>js</code> is short</p><p>rest</p>"],
];

test("markup becomes elements, and nothing else does", { skip }, async () => {
  await withPage(async ({ page }) => {
    const render = `({ renderMarkdown }, texts) => texts.map((text) => {
      const element = document.createElement("div");
      for (let i = 1; i <= text.length; i++) renderMarkdown(element, text.slice(0, i));
      return element.innerHTML.replaceAll(' dir="auto"', "");
    })`;
    const made = await inPage(page, "markdown.js", render, MARKUP.map(([text]) => text));
    assert.deepEqual(made, MARKUP.map(([, html]) => html));
  });
});

test("code is shown while it is written, and as it is", { skip: long }, async () => {
  await withPage(async ({ page }) => {
    const show = `({ renderMarkdown }, texts) => texts.map((text) => {
      const element = document.createElement("div");
      renderMarkdown(element, text);
      return [...element.children].map((child) =>
        child.tagName + ":" + (child.querySelector("pre") ?? child).textContent);
    })`;
    const code = "```js\nconst a = **1**;\n\n# no title";
    const inItem = (indent) => `1. Do:\n\n\`\`\`py\na\n\n\nb\n\`\`\``.replaceAll(/\n(?=\S)/g, `\n${indent}`);
    const made = await inPage(page, "markdown.js", show, [code, `${code}\n\`\`\`\nafter`,
      `${inItem("   ")}\n2. Then\n\nEnd`, inItem("    "), "+ ".repeat(3000)]);
    const text = "FIGURE:const a = **1**;\n\n# no title";
    assert.deepEqual(made.slice(0, 4),
      [[text], [text, "P:after"], ["OL:a\n\n\nb", "P:End"], ["OL:a\n\n\nb"]]);
    assert.equal(made[4].length, 1); // deeper than any stack
  });
});

test("a chat that two tabs went on with becomes two", { skip }, async () => {
  await withPage(async ({ page }) => {
    const say = `({ Chats, newChat }) => {
      const one = new Chats(), two = new Chats(), chat = newChat([{ role: "user", content: "q" }]);
      one.save(chat);
      one.setCurrent(chat.id);
      const other = two.get(chat.id);
      for (const content of ["a", "b"]) {
        other.messages.push({ role: "assistant", content });
        two.save(other);
      }
      for (const content of ["c", "d"]) {
        chat.messages.push({ role: "assistant", content });
        one.save(chat);
      }
      return [one.list().map(({ messages }) => messages.map(({ content }) => content).join("")),
        one.current().id === chat.id];
    }`;
    assert.deepEqual(await inPage(page, "chats.js", say, []), [["qcd", "qab"], true]);
  });
});

test("thinking is shown apart from the answer", { skip }, async () => {
  await withPage(async ({ page }) => {
    const show = `({ AnswerView }, tokens) => {
      const view = new AnswerView(undefined, () => undefined);
      for (const spans of tokens) view.add({ text: "raw", spans });
      view.finish("", "");
      const thinking = view.element.querySelector(".thinking");
      return [!thinking.hidden && thinking.querySelector("p").textContent,
        view.element.querySelector(".body").textContent, view.content];
    }`;
    const [reasoning, content] = ["reasoning", "content"].map((kind) => (text) => ({ kind, text }));
    assert.deepEqual(await inPage(page, "turn.ts", show,
      [[], [reasoning("\n"), reasoning("hm\n")], [reasoning("!"), content("\n\nYes")]]),
    ["hm\n!", "Yes", "Yes"]);
    assert.deepEqual(await inPage(page, "turn.ts", show, [[content("I look.")],
      [{ kind: "call", text: "{}", tag: "<tool_call>" }]]),
    [false, "I look.<tool_call>{}", "I look.<tool_call>{}"]);
  });
});

test("the test page checks kernels and reports", { skip: long }, async () => {
  await withPage(async ({ page, server }) => {
    await page.goto(`${server.base}test.html`);
    await page.locator("#kernels-run:enabled").click();
    await page.locator("#kernels-table tbody tr").nth(2).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped.").first().waitFor();
    assert.equal(await page.locator("#kernels-table tr.fail").count(), 0);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy as JSON" }).click();
    await page.getByText("Copied").first().waitFor();
    const report = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.ok(report.checks.length > 2);
    assert.deepEqual(report.groups.map(({ title }) => title),
                     ["Wick", "WebGPU", "WebAssembly", "Page and storage", "Browser"]);
    await page.locator("#speed-run").click();
    await page.locator("#speed-run:enabled").waitFor({ timeout: 300_000 });
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save the GPU report" }).click();
    const file = await saved;
    assert.equal(file.suggestedFilename(), "gpu_report.json");
    const gpu = JSON.parse(readFileSync(await file.path(), "utf8"));
    assert.equal(gpu.is_complete, true);
    assert.ok(gpu.adapters[0].name !== "" || gpu.adapters[0].unusable !== "");
    assert.ok(Object.values(gpu.verify[0].kernels).includes("right"));
    assert.ok(gpu.limits[0].submit_seconds > 0);
    assert.ok(gpu.kernels[0].other.length > 1 && gpu.kernels[0].q4_0.length === 0);
    for (const test of ["prefill", "decode"])
      assert.ok(gpu.models[0][test][0].tokens_per_second > 0);
  });
});

// --- The page of `wick serve` ---

const MARKDOWN = "A [link](https://example.com), [none](javascript:alert(1)) and <b>text</b>.\n\n"
  + "1. one\n   - inner\n2. two\n\n> quoted\n\n| a | b |\n| - | -: |\n| 1 | **2** |\n\n"
  + "```js\nconst x = 1; // why\n```";

test("the server's page: chats are answered, kept, branched, renamed and deleted", { skip },
     async () => {
  await withPage(async ({ page }) => {
    const answers = page.locator(".turn.answer:not(.busy)");
    await page.getByLabel("Your message").fill("Once upon a time");
    await page.keyboard.press("Enter");
    await answers.first().waitFor();
    const text = await textOf(page);
    assert.ok(text.length > 20, text);
    assert.match(await page.locator(".turn .figures").textContent(), /tokens\/s .* tokens · prompt/);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".turn.answer:not(.busy)").length === 1
      && document.querySelector(".turn .figures").textContent.includes("cached"));
    await page.reload();
    await page.waitForFunction((said) => document.querySelector(".turn .body")?.textContent === said,
                               text);
    await page.getByRole("button", { name: "Edit in a new chat" }).click();
    assert.equal(await page.getByLabel("Your message").inputValue(), "Once upon a time");
    await page.getByLabel("Your message").fill("The dog");
    await page.keyboard.press("Enter");
    await answers.first().waitFor();
    await page.getByRole("button", { name: "Chats" }).click();
    assert.deepEqual(await page.locator(".chats .open").allTextContents(),
                     ["The dog", "Once upon a time"]);
    await page.getByRole("button", { name: "Rename The dog" }).click();
    await page.getByLabel("Title").fill("Dogs");
    await page.keyboard.press("Enter");
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export Dogs" }).click();
    assert.equal((await saved).suggestedFilename(), "Dogs.md");
    await page.getByRole("button", { name: "Delete Dogs" }).click();
    await page.locator(".chats .open").click();
    assert.equal(await textOf(page), text);
  }, { start: startServed });
});

test("the server's page: a schema, a failure, and Markdown", { skip }, async () => {
  await withPage(async ({ page, complaints }) => {
    const ask = async (text) => {
      await page.getByLabel("Your message").fill(text);
      await page.keyboard.press("Enter");
      await page.locator(".turn.answer:not(.busy)").last().waitFor();
    };
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("JSON schema").fill('{ "enum": ["red", "blue"] }');
    await page.getByRole("button", { name: "Done" }).click();
    await ask("A colour?");
    assert.match(await textOf(page), /^"(red|blue)"$/);
    await page.getByRole("button", { name: "New chat", exact: true }).click();
    await ask("x".repeat(2000));
    assert.match(await page.locator(".turn .notice").textContent(), /exceeds the available context/);
    await page.evaluate((content) => localStorage.setItem("wick-chats", JSON.stringify(
      [{ id: "m", title: "M", date: 1, messages: [{ role: "assistant", content }] }])), MARKDOWN);
    await page.getByRole("button", { name: "Chats" }).click();
    await page.locator(".chats .open").click();
    const body = page.locator(".turn .body");
    assert.equal(await body.locator("a").count(), 1);
    assert.equal(await body.locator("b").count(), 0);
    assert.equal(await body.locator("ol > li > ul > li").textContent(), "inner");
    assert.equal(await body.locator("ol > li").count(), 2);
    assert.equal(await body.locator("blockquote").textContent(), "quoted");
    assert.equal(await body.locator("td strong").textContent(), "2");
    assert.equal(await body.locator(".c-comment").textContent(), "// why");
    assert.match(complaints.pop(), /status of 400/); // the browser's own line for the failure
  }, { start: startServed, viewport: { width: 390, height: 844 } });
});

/** Sends a text; what there is when its continuation has ended. */
async function writeInFirefox(page, text) {
  await page.locator("#prompt").fill(text);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".turn.answer:not(.busy)");
  return page.$eval(".turn .body", ({ textContent }) => textContent);
}

if (browsers.includes("firefox"))
  test("firefox: a text goes on, also after a reload without the server",
       { skip: missing("firefox") }, async (t) => {
    const server = await startDemoServer();
    t.after(server.close);
    const firefox = await startBrowser("firefox", { webgpu: false });
    t.after(firefox.close);
    const opened = await firefox.open(server.base, () => document.querySelector(".card"));
    const page = opened.native;
    page.setDefaultTimeout(60_000);
    await page.locator(".card::-p-text(Tiny stories)").click();
    await page.waitForSelector("#suggestions .chip");
    const text = await writeInFirefox(page, "Once upon a time");
    assert.match(text, /^Once upon a time.{20,}/s);
    assert.deepEqual(opened.complaints, []);
    await page.evaluate(() => navigator.serviceWorker.ready.then(() =>
      localStorage.setItem("wick-settings", JSON.stringify({ maxTokens: 24 }))));
    await server.close();
    await page.reload();
    assert.equal(await page.evaluate(() => crossOriginIsolated), true);
    await page.waitForFunction(
      (before) => document.querySelector(".turn .body")?.textContent === before, {}, text);
    await page.locator("#new-chat").click();
    await page.waitForFunction(() => !document.querySelector(".turn"));
    assert.match(await writeInFirefox(page, "One day"), /^One day.{20,}/s);
  });

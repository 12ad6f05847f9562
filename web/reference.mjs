// usage: node reference.mjs [--check]
// Writes docs/web-api.md from the types and comments of what src/wick.ts exports; --check only
// tells whether it is as it should be.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const here = dirname(fileURLToPath(import.meta.url));
const entry = join(here, "src/wick.ts");
const out = join(here, "../docs/web-api.md");

const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(join(here, "tsconfig.json"), ts.sys.readFile).config, ts.sys, here);
const program = ts.createProgram([entry], options);
const checker = program.getTypeChecker();

const documentation = (symbol) =>
  ts.displayPartsToString(symbol.getDocumentationComment(checker)).replace(/\s*\n\s*/g, " ").trim();
const isInternal = (symbol) => symbol.getJsDocTags().some(({ name }) => name === "internal");
const isHidden = (node) =>
  ts.getCombinedModifierFlags(node) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)
  || (node.name && ts.isPrivateIdentifier(node.name));

/** The declaration without body, comments and initial values, on one line. */
function signature(node) {
  const parts = [];
  node.forEachChild((child) => {
    if (child !== node.body && child !== node.initializer) parts.push(child.getEnd());
  });
  const end = parts.length > 0 ? Math.max(...parts) : node.getEnd();
  const text = node.getSourceFile().text.slice(node.getStart(), end);
  return text.replace(/\/\*\*?[\s\S]*?\*\//g, "").replace(/\s+/g, " ").replace(/\(\s/g, "(")
    .replace(/^(export|async|readonly) /, "").replace(/\basync /, "").trim();
}

function describeMember(member) {
  const symbol = checker.getSymbolAtLocation(member.name ?? member);
  if (isHidden(member) || (symbol && isInternal(symbol))) return [];
  const code = member.kind === ts.SyntaxKind.PropertySignature
    ? member.getText().replace(/\/\*\*?[\s\S]*?\*\//g, "").replace(/\s+/g, " ").replace(/;$/, "")
    : signature(member);
  const text = symbol ? documentation(symbol) : "";
  return [`- \`${code}\`${text ? `: ${text}` : ""}`];
}

function members(node) {
  const isMember = (m) => !ts.isConstructorDeclaration(m) && !ts.isClassStaticBlockDeclaration(m);
  return node.members.filter(isMember).flatMap(describeMember);
}

/** The class that one extends; undefined: none, or one with its own entry. */
function hiddenBase(node) {
  const clause = node.heritageClauses?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword);
  const symbol = clause && checker.getTypeAtLocation(clause.types[0]).symbol;
  const base = symbol && !exported.has(symbol) ? symbol.declarations[0] : undefined;
  return base?.getSourceFile().fileName.startsWith(join(here, "src")) ? base : undefined;
}

/** With those of the classes that it extends and that have no entry of their own, theirs first. */
function allMembers(node) {
  const base = hiddenBase(node);
  return [...(base ? allMembers(base) : []), ...members(node)];
}

function describeExport(symbol) {
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const node = target.declarations?.[0];
  if (!node || isInternal(target)) return undefined;
  const lines = [`### ${symbol.name}`, "", documentation(target), ""];
  if (ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)) {
    const parent = node.heritageClauses?.map((clause) => clause.getText()).join(" ");
    if (parent && !hiddenBase(node)) lines.push(`\`${parent}\``, "");
    lines.push(...allMembers(node), "");
    return { kind: ts.isClassDeclaration(node) ? "Classes" : "Options and results", lines };
  }
  if (ts.isTypeAliasDeclaration(node)) {
    lines.push("```ts", node.getText().replace(/^export /, ""), "```", "");
    return { kind: "Types", lines };
  }
  if (ts.isFunctionDeclaration(node)) {
    lines.push(`- \`${signature(node)}\``, "");
    return { kind: "Functions", lines };
  }
  return undefined;
}

const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(entry)));
const exported = new Set(symbols.map((symbol) =>
  symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol));
const described = symbols
  .map(describeExport).filter(Boolean);
const text = ["# libwick for JavaScript: reference", "",
  "Made from the types of the package by `web/reference.mjs`. [web.md](web.md) begins at the beginning.",
  "", ...["Classes", "Options and results", "Types", "Functions"].flatMap((kind) => {
    const group = described.filter((one) => one.kind === kind);
    return group.length > 0 ? [`## ${kind}`, "", ...group.flatMap(({ lines }) => lines)] : [];
  })].join("\n").replace(/\n{3,}/g, "\n\n").trimEnd() + "\n";

if (!process.argv.includes("--check")) {
  writeFileSync(out, text);
} else if (readFileSync(out, "utf8") !== text) {
  console.error("docs/web-api.md is not what the types say: run node web/reference.mjs");
  process.exit(1);
}

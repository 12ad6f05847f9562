/** Models of huggingface.co by hf:OWNER/REPO or hf:OWNER/REPO:FILE, as `wick pull` takes them. */
import { cancelled, linkedController } from "./byte_source.js";
import { ModelCache } from "./cache.js";
import { CONNECT_HINT, timed, type HttpOptions } from "./download.js";
import { messageOf, WickError } from "./errors.js";

const HUB = "https://huggingface.co/";
const FORM = /^hf:([\w.-]+\/[\w.-]+)(?::(.+))?$/;
const LATER_PART = /-(?!00001)\d{5}-of-\d{5}\.gguf$/i, END = /(-00001-of-\d{5})?\.gguf$/i;
/** Of the types of a repository that says no more. */
const USUAL_TYPE = "q4_k_m";

interface HubOptions extends HttpOptions {
  signal?: AbortSignal;
}

const addressOf = (repository: string, file: string): string =>
  `${HUB}${repository}/resolve/main/${file.split("/").map(encodeURIComponent).join("/")}`;

/** The address that is meant; what is no such name stays as it is. */
export async function hubAddress(name: string, options: HubOptions,
                                 cache: ModelCache | undefined): Promise<string> {
  if (!name.startsWith("hf:")) return name;
  const [, repository, encoded] = FORM.exec(name) ?? [];
  const wanted = decoded(encoded);
  if (repository === undefined || (encoded !== undefined && wanted === undefined))
    throw new WickError("ARGUMENT", `'${name}' is not hf:OWNER/REPO or hf:OWNER/REPO:FILE`);
  if (wanted && END.test(wanted)) return addressOf(repository, wanted);
  try {
    return addressOf(repository, choose(name, await listFiles(repository, options), wanted));
  } catch (error) { // without a network what is in the cache serves
    const begin = addressOf(repository, "");
    const kept = (await cache?.list().catch(() => []) ?? []).map((entry) => entry.name)
      .filter((address) => address.startsWith(begin))
      .map((address) => decodeURIComponent(address.slice(begin.length)));
    if ((error as WickError).code !== "IO" || kept.length === 0) throw error;
    return addressOf(repository, choose(name, kept, wanted));
  }
}

/** undefined: there is none, or it is not what encodeURI makes. */
function decoded(text: string | undefined): string | undefined {
  try {
    return text && decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

async function listFiles(repository: string, options: HubOptions): Promise<string[]> {
  const { fetch: get = fetch, headers = [], signal } = options;
  const address = `${HUB}api/models/${repository}`;
  const own = linkedController(signal);
  let response: Response;
  try {
    response = await timed(own, options, get(address, { headers, signal: own.signal }));
    if (response.ok) {
      const { siblings = [] } =
        await timed(own, options, response.json()) as { siblings?: { rfilename: string }[] };
      return siblings.map(({ rfilename }) => rfilename);
    }
  } catch (cause) {
    if (signal?.aborted) throw cancelled(signal);
    throw new WickError("IO", `${address}: ${messageOf(cause)}${CONNECT_HINT}`, { cause });
  } finally {
    own.abort();
  }
  const { status } = response;
  throw status >= 500 || status === 429 || status === 408 ? new WickError("IO", `${address}: the server answered ${status}`)
    : new WickError("NOT_FOUND", `${address}: the server answered ${status}: there is no such `
      + "repository, or it wants a token: headers: { Authorization: \"Bearer hf_...\" }");
}

/** The file that is named, or the only one of the type, or the only one at all. */
function choose(name: string, all: string[], wanted: string | undefined): string {
  const files = all.filter((file) => /\.gguf$/i.test(file) && !LATER_PART.test(file));
  const named = files.find((file) => file.replace(END, "") === wanted);
  const models = files.filter((file) => !/mmproj|imatrix/i.test(file));
  const type = (wanted ?? USUAL_TYPE).replace(/[^\w-]/g, "\\$&");
  const typed = (wanted === undefined ? models : files)
    .filter((file) => RegExp(`(^|[^a-z0-9])${type}(?![a-z0-9_])`, "i").test(file));
  const found = named ?? (wanted === undefined && models.length === 1 ? models : typed);
  if (typeof found === "string") return found;
  if (found.length === 1) return found[0]!;
  const [, repository] = FORM.exec(name)!;
  const names = files.map((file) => `hf:${repository!}:${file}`).join(", ");
  if (files.length === 0)
    throw new WickError("NOT_FOUND", `${name}: the repository has no GGUF file`);
  throw new WickError("NOT_FOUND", `'${name}' is not exactly one model: choose one of ${names}`);
}

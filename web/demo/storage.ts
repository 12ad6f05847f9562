/** What this origin uses of the disk and how much it may; empty in a page that may not ask. */
export async function estimateStorage(): Promise<StorageEstimate> {
  try {
    return await navigator.storage?.estimate?.() ?? {};
  } catch {
    return {};
  }
}

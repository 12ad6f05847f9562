// An item is an element.
fn put(to: u32, first: u32) { store_cache(to, load_fresh(first)); }

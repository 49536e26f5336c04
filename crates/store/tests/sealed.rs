//! Values that are unreadable on disk: without their key, with another one, and while keys change.

use std::path::Path;

use store::{Change, Expect, OpenError, Options, Payload, Seal, Store, Write};

const OLD: [u8; 32] = [1; 32];
const NEW: [u8; 32] = [2; 32];

fn seal(keys: &[[u8; 32]]) -> Seal {
    Seal::new(keys, ["secrets"]).expect("at least one key")
}

async fn put(store: &Store, table: &str, key: &str, value: &str) {
    let change = Change::Put(Payload::plain(value.as_bytes().to_vec()));
    let write =
        Write { table: table.into(), key: key.into(), expect: Expect::Any, limits: Vec::new(), change };
    store.write(write).await.expect("the store takes it");
}

fn get(store: &Store, table: &str, key: &str) -> String {
    let entry = store.get(table, key).expect("it is there");
    String::from_utf8(entry.value.to_vec()).expect("a text")
}

/// Whether any file of a directory holds a text.
fn holds(directory: &Path, text: &[u8]) -> bool {
    let files = std::fs::read_dir(directory).expect("the directory");
    files
        .map(|file| std::fs::read(file.expect("a file").path()).expect("its bytes"))
        .any(|bytes| bytes.windows(text.len()).any(|part| part == text))
}

fn key_bytes(key: &[u8; 32]) -> Vec<u8> {
    let name = Seal::key_name(key);
    (0..name.len()).step_by(2).map(|at| u8::from_str_radix(&name[at..at + 2], 16).expect("hex")).collect()
}

#[tokio::test]
async fn only_the_key_opens_what_was_sealed() {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    let store = Store::open_sealed(folder.path(), Options::default(), seal(&[OLD])).expect("a new store");
    put(&store, "secrets", "a", "hidden").await;
    put(&store, "maps", "a", "plain").await;
    assert_eq!(get(&store, "secrets", "a"), "hidden", "readers see what it is");
    store.close().await.expect("closed");
    assert!(!holds(folder.path(), b"hidden") && holds(folder.path(), b"plain"));
    for wrong in [Seal::none(), seal(&[NEW])] {
        let refused = Store::open_sealed(folder.path(), Options::default(), wrong).err();
        let Some(OpenError::Sealed { key, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(key, Seal::key_name(&OLD));
    }
    let store = Store::open_sealed(folder.path(), Options::default(), seal(&[OLD])).expect("its key");
    assert_eq!((get(&store, "secrets", "a"), get(&store, "maps", "a")), ("hidden".into(), "plain".into()));
}

#[tokio::test]
async fn a_new_key_replaces_the_old_one_once_history_is_gone() {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    let store = Store::open(folder.path(), Options::default()).expect("a new store");
    put(&store, "secrets", "never", "hidden1").await;
    store.close().await.expect("closed");
    let store =
        Store::open_sealed(folder.path(), Options::default(), seal(&[OLD])).expect("sealed from now on");
    put(&store, "secrets", "old", "hidden2").await;
    store.compact(store.revision()).await.expect("compacted");
    store.close().await.expect("closed");
    assert!(!holds(folder.path(), b"hidden1"), "what was written before there was a key is sealed too");
    assert!(holds(folder.path(), &key_bytes(&OLD)));
    let store = Store::open_sealed(folder.path(), Options::default(), seal(&[NEW, OLD])).expect("both keys");
    put(&store, "maps", "a", "plain").await;
    store.compact(store.revision()).await.expect("compacted");
    store.close().await.expect("closed");
    assert!(!holds(folder.path(), &key_bytes(&OLD)), "nothing needs the old key");
    let store =
        Store::open_sealed(folder.path(), Options::default(), seal(&[NEW])).expect("the new key is enough");
    assert_eq!(
        (get(&store, "secrets", "never"), get(&store, "secrets", "old")),
        ("hidden1".into(), "hidden2".into())
    );
}

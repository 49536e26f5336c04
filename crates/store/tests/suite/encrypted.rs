//! Encryption at rest: without the key, with another one, and during key rotation.

use std::path::Path;

use store::{Change, Encryption, Expect, OpenError, Options, Payload, Store, Write};

const OLD: [u8; 32] = [1; 32];
const NEW: [u8; 32] = [2; 32];

fn encryption(keys: &[[u8; 32]]) -> Encryption {
    Encryption::new(keys, ["secrets"]).expect("at least one key")
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
    let name = Encryption::key_name(key);
    (0..name.len()).step_by(2).map(|at| u8::from_str_radix(&name[at..at + 2], 16).expect("hex")).collect()
}

#[tokio::test]
async fn only_the_key_decrypts_what_was_encrypted() {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    let store =
        Store::open_encrypted(folder.path(), Options::default(), encryption(&[OLD])).expect("a new store");
    put(&store, "secrets", "a", "hidden").await;
    put(&store, "maps", "a", "plain").await;
    assert_eq!(get(&store, "secrets", "a"), "hidden", "readers see what it is");
    store.close().await.expect("closed");
    assert!(!holds(folder.path(), b"hidden") && holds(folder.path(), b"plain"));
    for wrong in [Encryption::none(), encryption(&[NEW])] {
        let refused = Store::open_encrypted(folder.path(), Options::default(), wrong).err();
        let Some(OpenError::Encrypted { key, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(key, Encryption::key_name(&OLD));
    }
    let store =
        Store::open_encrypted(folder.path(), Options::default(), encryption(&[OLD])).expect("its key");
    assert_eq!((get(&store, "secrets", "a"), get(&store, "maps", "a")), ("hidden".into(), "plain".into()));
}

#[tokio::test]
async fn a_new_key_replaces_the_old_one_once_history_is_gone() {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    let store = Store::open(folder.path(), Options::default()).expect("a new store");
    put(&store, "secrets", "never", "hidden1").await;
    store.close().await.expect("closed");
    let store = Store::open_encrypted(folder.path(), Options::default(), encryption(&[OLD]))
        .expect("sealed from now on");
    put(&store, "secrets", "old", "hidden2").await;
    store.compact(store.revision()).await.expect("compacted");
    store.close().await.expect("closed");
    assert!(!holds(folder.path(), b"hidden1"), "what was written before there was a key is sealed too");
    assert!(holds(folder.path(), &key_bytes(&OLD)));
    let store =
        Store::open_encrypted(folder.path(), Options::default(), encryption(&[NEW, OLD])).expect("both keys");
    put(&store, "maps", "a", "plain").await;
    store.compact(store.revision()).await.expect("compacted");
    store.close().await.expect("closed");
    assert!(!holds(folder.path(), &key_bytes(&OLD)), "nothing needs the old key");
    let store = Store::open_encrypted(folder.path(), Options::default(), encryption(&[NEW]))
        .expect("the new key is enough");
    assert_eq!(
        (get(&store, "secrets", "never"), get(&store, "secrets", "old")),
        ("hidden1".into(), "hidden2".into())
    );
}

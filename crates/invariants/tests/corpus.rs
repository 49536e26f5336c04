//! The inputs that fuzzing found worth keeping, and those that it started from, against the invariants.

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_obeys_the_invariants() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut broken = Vec::new();
    for (name, invariant) in invariants::ALL {
        let entries =
            fs::read_dir(corpus.join(name)).unwrap_or_else(|error| panic!("the corpus of {name}: {error}"));
        let mut count = 0;
        for entry in entries {
            let path = entry.expect("a file of the corpus").path();
            let input = fs::read(&path).expect("a readable file");
            if std::panic::catch_unwind(|| invariant(&input)).is_err() {
                broken.push(path);
            }
            count += 1;
        }
        assert!(count > 0, "the corpus of {name} is empty");
    }
    assert!(broken.is_empty(), "invariants are broken by {broken:?}");
}

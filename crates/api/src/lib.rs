//! What exists: kinds, fields, labels and names. Holds no behaviour beyond parsing and naming.

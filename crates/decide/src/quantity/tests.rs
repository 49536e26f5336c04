//! Quantities as Kubernetes parses and prints them.

use proptest::prelude::*;

use super::*;

fn check(text: &str, canonical: &str, units: i64, milli_units: i64) {
    let amount: Amount = text.parse().expect(text);
    assert_eq!(amount.to_string(), canonical, "{text}");
    assert_eq!(amount.units(), units, "{text}");
    assert_eq!(amount.milli_units(), milli_units, "{text}");
}

#[test]
fn amounts_are_read_and_written_as_kubernetes_does() {
    check("0", "0", 0, 0);
    check("1", "1", 1, 1000);
    check("500m", "500m", 1, 500);
    check("0.5", "500m", 1, 500);
    check("1500m", "1500m", 2, 1500);
    check("2000m", "2", 2, 2000);
    check("1Ki", "1Ki", 1024, 1_024_000);
    check("1024Ki", "1Mi", 1 << 20, 1_048_576_000);
    check("1.5Gi", "1536Mi", 1_610_612_736, 1_610_612_736_000);
    check("0.5Ki", "512", 512, 512_000);
    check("1k", "1k", 1000, 1_000_000);
    check("1e3", "1e3", 1000, 1_000_000);
    check("1E3", "1e3", 1000, 1_000_000);
    check("1E", "1E", 1_000_000_000_000_000_000, i64::MAX);
    check("12e-1", "1200e-3", 2, 1200);
    check("-1.5", "-1500m", -2, -1500);
    check("+3", "3", 3, 3000);
    check(".5", "500m", 1, 500);
    check("5.", "5", 5, 5000);
    check("1n", "1n", 1, 1);
    check("0.1n", "1n", 1, 1);
    check("99999999999999999999999", "9223372036854775807", i64::MAX, i64::MAX);
    check("9Ei", "9223372036854775807", i64::MAX, i64::MAX);
    check("1e999999999999", "9223372036854775807", i64::MAX, i64::MAX);
    check("1e-999999999999", "1e-9", 1, 1);
    check("0e999999999999", "0", 0, 0);
}

#[test]
fn what_makes_no_sense_is_no_quantity() {
    for text in ["", "-", ".", "m", "1x", "1 ", " 1", "1.2.3", "1e", "1e+", "1Kii", "1ki", "--1", "0x1", "1é"]
    {
        assert!(text.parse::<Amount>().is_err(), "{text:?}");
    }
    let error = "much".parse::<Amount>().expect_err("no quantity");
    assert_eq!(
        error.to_string(),
        "\"much\" is not a quantity: write a number and a unit such as 500m, 2 or 1Gi"
    );
}

#[test]
fn amounts_add_up() {
    let amount = |text: &str| text.parse::<Amount>().expect(text);
    assert_eq!((amount("500m") + amount("1")).to_string(), "1500m");
    assert_eq!((amount("0") + amount("1Gi")).to_string(), "1Gi");
    assert_eq!((amount("1Gi") - amount("512Mi")).to_string(), "512Mi");
    assert_eq!((amount("100m") * 30).to_string(), "3");
    assert!(amount("1Gi") > amount("1G"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn reading_never_panics(text in "[-+]?[0-9.]{0,45}[a-zA-Z0-9+-]{0,6}|\\PC{0,12}") {
        let _ = text.parse::<Amount>();
    }

    #[test]
    fn what_was_written_reads_as_the_same_amount(
        number in "-?[0-9]{1,22}(\\.[0-9]{0,12})?",
        suffix in prop::sample::select(vec!["", "n", "u", "m", "k", "M", "E", "Ki", "Gi", "Ei", "e3", "E-2"]),
    ) {
        let amount: Amount = format!("{number}{suffix}").parse().expect("a quantity");
        let again: Amount = amount.to_string().parse().expect("a quantity");
        prop_assert_eq!(again, amount);
        prop_assert_eq!(again.to_string(), amount.to_string());
    }
}

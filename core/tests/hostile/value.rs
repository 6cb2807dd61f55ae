//! Values that nobody means well by.

use serde_json::{Value, json};

use crate::dice::Dice;

/// Names that lead somewhere, and some that nearly do.
const NAMES: &[&str] = &[
    "a",
    "b",
    "vm-a",
    "vm-0",
    "settings",
    "c1",
    "c2",
    "c3",
    "gloo-mesh",
    "istio-system",
    "shop",
    "team-1",
    "reviews",
    "db",
    "service-1",
    "service-7",
    "twin",
    "outside",
    "gone",
    "default",
    "app",
    "version",
    "v1",
    "*",
    "istiod-istio-system-c1",
    "istiod-istio-system-c2",
    "istio-ingressgateway",
    "http",
    "tls",
];

/// Texts that look like something and are something else.
const TEXTS: &[&str] = &[
    "",
    " ",
    "\0",
    "\u{7f}\u{1b}[31m",
    "\n",
    "---\n",
    "%",
    "{}",
    "{{ .Values }}",
    "../../etc/passwd",
    "null",
    "~",
    "true",
    "NaN",
    "-0",
    "1e400",
    "0x1F",
    "5s",
    "-5s",
    "1h1h1h",
    ".s",
    "999999999999999999999999999999h",
    "0.000000000000000000000000000001ns",
    "١٢٣s",
    "µs",
    "e\u{301}\u{301}\u{301}",
    "\u{202e}sdrawkcab",
    "\u{feff}bom",
    "😀",
    "ｆｕｌｌ",
    "İ",
    "ß",
    "\u{10ffff}",
    "xn--",
    "a..b",
    "-a-",
    "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z",
    "::1",
    "2001:db8::1",
    "10.0.0.256",
    "999.999.999.999",
    "http://[::1",
    "spec[0].x",
    "ENABLED",
    "enabled",
];

/// Expressions that are long to compile, large when they are, or none at all.
const EXPRESSIONS: &[&str] = &[
    "(",
    "[",
    "a**",
    "(?P<",
    "\\",
    "\\C",
    "(?=a)",
    "(a+)+$",
    "(.*)*(.*)*(.*)*x",
    "a{1000}",
    "(a{1000}){1000}",
    "((a{100}){100}){100}",
    "\\w{1000}",
    "(\\w{200}){200}",
    "\\pL{500}",
    "[\\pL\\pN]{900}",
    "(?i)[\u{0}-\u{10ffff}]{300}",
    "(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((x)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
    "a|b|c|d|(e|f|(g|h|(i|j)))*",
    "^$",
    "\u{1f600}+",
    "(?-u)\\xff",
];

/// A text: one that leads somewhere, mostly.
pub(crate) fn text(dice: &mut Dice) -> String {
    match dice.below(40) {
        0..24 => (*dice.pick(NAMES)).to_owned(),
        24..36 => (*dice.pick(TEXTS)).to_owned(),
        36 => expression(dice),
        37 => {
            let length = dice.below(12);
            (0..length)
                .map(|_| {
                    let drawn = u32::try_from(dice.next() % 0x11_0000).expect("21 bits");
                    char::from_u32(drawn).unwrap_or('\u{fffd}')
                })
                .collect()
        }
        38 => format!("{}-{}", dice.pick(NAMES), dice.below(50)),
        _ => {
            let length = [300, 300, 300, 300, 5_000, 5_000, 70_000][dice.below(7)];
            dice.pick(&["x", "é", "[", "a.", "💥"]).repeat(length)
        }
    }
}

pub(crate) fn expression(dice: &mut Dice) -> String {
    let one = *dice.pick(EXPRESSIONS);
    match dice.below(6) {
        0 => one.repeat(dice.below(30) + 1),
        1 => format!("({one})|{}", dice.pick(EXPRESSIONS)),
        2 => format!("{}x{}", "(".repeat(300), ")".repeat(300)),
        _ => one.to_owned(),
    }
}

/// A number that is at an edge, or none.
pub(crate) fn number(dice: &mut Dice) -> Value {
    let edges = [
        json!(0),
        json!(1),
        json!(-1),
        json!(7),
        json!(80),
        json!(418),
        json!(9080),
        json!(65_535),
        json!(65_536),
        json!(i32::MAX),
        json!(i64::from(i32::MAX) + 1),
        json!(i32::MIN),
        json!(u32::MAX),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(0.5),
        json!(-0.0),
        json!(1e308),
        json!(f64::MIN_POSITIVE),
    ];
    edges[dice.below(edges.len())].clone()
}

/// Anything at all, nested at most `depth` deep.
pub(crate) fn anything(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(dice.one_in(2)),
        2 => number(dice),
        3..6 => json!(text(dice)),
        6 => {
            let length = dice.below(4);
            (0..length).map(|_| anything(dice, depth - 1)).collect()
        }
        _ => {
            let length = dice.below(4);
            let members = (0..length).map(|_| (text(dice), anything(dice, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

/// A list within a list within a list.
pub(crate) fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(0), |inner, level| {
        if level % 2 == 0 {
            json!([inner])
        } else {
            json!({ "a": inner })
        }
    })
}

/// How long a list is: short, mostly.
pub(crate) fn length(dice: &mut Dice) -> usize {
    match dice.below(400) {
        0 => 1_100,
        1..4 => 150,
        4..20 => 17,
        _ => dice.below(4),
    }
}

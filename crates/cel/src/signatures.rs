//! The function signatures of the CEL library that Kubernetes 1.35 offers, as a table. The implementations are in
//! `functions`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::authorizer;
use crate::types::{Type, UNBOUNDED};

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Signature {
    /// What stands before the dot, for functions that are called so.
    pub target: Option<Type>,
    pub args: Vec<Type>,
    pub result: Type,
}

/// Types that have names in expressions.
const TYPE_NAMES: [&str; 24] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
    "net.IP",
    "net.CIDR",
    "kubernetes.URL",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.NamedFormat",
    authorizer::AUTHORIZER,
    authorizer::PATH_CHECK,
    authorizer::GROUP_CHECK,
    authorizer::RESOURCE_CHECK,
    authorizer::DECISION,
];

/// The type of this name, if there is one.
pub(crate) fn type_name(name: &str) -> Option<&'static str> {
    TYPE_NAMES.into_iter().find(|known| *known == name)
}

/// Whether a function of this name exists that is called without a target.
pub(crate) fn is_function(name: &str) -> bool {
    of(name).iter().any(|signature| signature.target.is_none())
}

/// The ways to call a function.
pub(crate) fn of(name: &str) -> &'static [Signature] {
    ALL.get(name).map(Vec::as_slice).unwrap_or_default()
}

static ALL: LazyLock<HashMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
    let mut all: HashMap<&'static str, Vec<Signature>> = HashMap::new();
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (names, ways) = line.split_once(' ').expect("a line of the table has a name and signatures");
        for (name, way) in names.split(',').flat_map(|name| ways.split(" | ").map(move |way| (name, way))) {
            all.entry(name).or_default().push(signature(way));
        }
    }
    all
});

/// Reads `target.(arg, arg) -> result`.
fn signature(text: &'static str) -> Signature {
    let (call, result) = text.split_once("->").expect("a signature has a result");
    let mut reader = Reader { rest: call.trim() };
    let target = (!reader.rest.starts_with('(')).then(|| {
        let target = reader.kind();
        reader.skip(".");
        target
    });
    reader.skip("(");
    let mut args = Vec::new();
    while !reader.rest.starts_with(')') {
        args.push(reader.kind());
        reader.skip(",");
    }
    Signature { target, args, result: Reader { rest: result.trim() }.kind() }
}

struct Reader {
    rest: &'static str,
}

impl Reader {
    fn skip(&mut self, text: &str) {
        self.rest = self.rest.strip_prefix(text).unwrap_or(self.rest).trim_start();
    }

    fn kind(&mut self) -> Type {
        let end = self.rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        let inner = |reader: &mut Self| {
            let kind = reader.kind();
            reader.skip(",");
            Arc::new(kind)
        };
        let bracket = |reader: &mut Self, make: &mut dyn FnMut(&mut Self) -> Type| {
            reader.skip("(");
            let made = make(reader);
            reader.skip(")");
            made
        };
        match name {
            "dyn" => Type::ANY,
            "null" => Type::Null,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::TEXT,
            "bytes" => Type::Bytes(UNBOUNDED),
            "timestamp" => Type::Timestamp(UNBOUNDED),
            "duration" => Type::Duration(UNBOUNDED),
            "type" => Type::Type,
            "list" => bracket(self, &mut |reader| Type::List(inner(reader), UNBOUNDED)),
            "map" => bracket(self, &mut |reader| Type::Map(inner(reader), inner(reader), UNBOUNDED)),
            "optional" => bracket(self, &mut |reader| Type::Optional(inner(reader))),
            "quantity" => Type::Opaque("kubernetes.Quantity"),
            "url" => Type::Opaque("kubernetes.URL"),
            "semver" => Type::Opaque("kubernetes.Semver"),
            "format" => Type::Opaque("kubernetes.NamedFormat"),
            "ip" => Type::Opaque("net.IP"),
            "cidr" => Type::Opaque("net.CIDR"),
            "authorizer" => Type::Opaque(authorizer::AUTHORIZER),
            "pathcheck" => Type::Opaque(authorizer::PATH_CHECK),
            "groupcheck" => Type::Opaque(authorizer::GROUP_CHECK),
            "resourcecheck" => Type::Opaque(authorizer::RESOURCE_CHECK),
            "decision" => Type::Opaque(authorizer::DECISION),
            param => Type::Param(param.bytes().next().unwrap_or(b'A').wrapping_sub(b'A')),
        }
    }
}

/// Names, then the ways to call them.
const TABLE: &str = "
_+_ (int, int) -> int | (uint, uint) -> uint | (double, double) -> double | (string, string) -> string
_+_ (bytes, bytes) -> bytes | (list(A), list(A)) -> list(A) | (duration, duration) -> duration
_+_ (timestamp, duration) -> timestamp | (duration, timestamp) -> timestamp
_-_ (int, int) -> int | (uint, uint) -> uint | (double, double) -> double | (duration, duration) -> duration
_-_ (timestamp, timestamp) -> duration | (timestamp, duration) -> timestamp
_*_,_/_ (int, int) -> int | (uint, uint) -> uint | (double, double) -> double
_%_ (int, int) -> int | (uint, uint) -> uint
-_ (int) -> int | (double) -> double
!_ (bool) -> bool
_==_,_!=_ (A, A) -> bool
_<_,_<=_,_>_,_>=_ (bool, bool) -> bool | (int, int) -> bool | (uint, uint) -> bool | (double, double) -> bool
_<_,_<=_,_>_,_>=_ (int, uint) -> bool | (int, double) -> bool | (uint, int) -> bool | (uint, double) -> bool
_<_,_<=_,_>_,_>=_ (double, int) -> bool | (double, uint) -> bool | (string, string) -> bool
_<_,_<=_,_>_,_>=_ (bytes, bytes) -> bool | (timestamp, timestamp) -> bool | (duration, duration) -> bool
@in (A, list(A)) -> bool | (A, map(A, B)) -> bool
_[_] (list(A), int) -> A | (map(A, B), A) -> B | (optional(list(A)), int) -> optional(A)
_[_] (optional(map(A, B)), A) -> optional(B)
_[?_] (list(A), int) -> optional(A) | (map(A, B), A) -> optional(B)
_[?_] (optional(list(A)), int) -> optional(A) | (optional(map(A, B)), A) -> optional(B)
size (string) -> int | (bytes) -> int | (list(A)) -> int | (map(A, B)) -> int
size string.() -> int | bytes.() -> int | list(A).() -> int | map(A, B).() -> int
type (A) -> type
dyn (A) -> dyn
bool (bool) -> bool | (string) -> bool
int (int) -> int | (uint) -> int | (double) -> int | (string) -> int | (timestamp) -> int | (duration) -> int
uint (uint) -> uint | (int) -> uint | (double) -> uint | (string) -> uint
double (double) -> double | (int) -> double | (uint) -> double | (string) -> double
string (string) -> string | (bool) -> string | (int) -> string | (uint) -> string | (double) -> string
string (bytes) -> string | (timestamp) -> string | (duration) -> string | (ip) -> string | (cidr) -> string
bytes (bytes) -> bytes | (string) -> bytes
timestamp (timestamp) -> timestamp | (string) -> timestamp | (int) -> timestamp
duration (duration) -> duration | (string) -> duration | (int) -> duration
getFullYear,getMonth,getDayOfMonth,getDate,getDayOfWeek,getDayOfYear timestamp.() -> int | timestamp.(string) -> int
getHours,getMinutes,getSeconds,getMilliseconds timestamp.() -> int | timestamp.(string) -> int | duration.() -> int
contains,startsWith,endsWith,matches string.(string) -> bool
matches (string, string) -> bool
charAt string.(int) -> string
indexOf,lastIndexOf string.(string) -> int | string.(string, int) -> int | list(A).(A) -> int
lowerAscii,upperAscii,trim string.() -> string
replace string.(string, string) -> string | string.(string, string, int) -> string
split string.(string) -> list(string) | string.(string, int) -> list(string)
substring string.(int) -> string | string.(int, int) -> string
join list(string).() -> string | list(string).(string) -> string
format string.(list(dyn)) -> string
strings.quote (string) -> string
find string.(string) -> string
findAll string.(string) -> list(string) | string.(string, int) -> list(string)
isSorted list(A).() -> bool
sum list(int).() -> int | list(uint).() -> uint | list(double).() -> double | list(duration).() -> duration
min,max list(A).() -> A
slice list(A).(int, int) -> list(A)
flatten list(A).() -> list(dyn) | list(A).(int) -> list(dyn)
lists.range (int) -> list(int)
distinct,reverse,sort list(A).() -> list(A)
first,last list(A).() -> optional(A)
sets.contains,sets.equivalent,sets.intersects (list(A), list(A)) -> bool
optional.of,optional.ofNonZeroValue (A) -> optional(A)
optional.none () -> optional(dyn)
hasValue optional(A).() -> bool
value optional(A).() -> A
or optional(A).(optional(A)) -> optional(A)
orValue optional(A).(A) -> A
optional.unwrap (list(optional(A))) -> list(A)
unwrapOpt list(optional(A)).() -> list(A)
quantity (string) -> quantity
isQuantity (string) -> bool
sign (quantity) -> int
isInteger quantity.() -> bool
asInteger quantity.() -> int
asApproximateFloat quantity.() -> double
add,sub quantity.(quantity) -> quantity | quantity.(int) -> quantity
isGreaterThan,isLessThan quantity.(quantity) -> bool | semver.(semver) -> bool
compareTo quantity.(quantity) -> int | semver.(semver) -> int
url (string) -> url
isURL (string) -> bool
getScheme,getHost,getHostname,getPort,getEscapedPath url.() -> string
getQuery url.() -> map(string, list(string))
ip (string) -> ip
ip cidr.() -> ip
isIP,ip.isCanonical,isCIDR (string) -> bool
family ip.() -> int
isUnspecified,isLoopback,isLinkLocalMulticast,isLinkLocalUnicast,isGlobalUnicast ip.() -> bool
cidr (string) -> cidr
containsIP cidr.(string) -> bool | cidr.(ip) -> bool
containsCIDR cidr.(string) -> bool | cidr.(cidr) -> bool
prefixLength cidr.() -> int
masked cidr.() -> cidr
semver (string) -> semver | (string, bool) -> semver
isSemver (string) -> bool | (string, bool) -> bool
major,minor,patch semver.() -> int
format.named (string) -> optional(format)
format.dns1123Label,format.dns1123Subdomain,format.dns1035Label,format.qualifiedName () -> format
format.dns1123LabelPrefix,format.dns1123SubdomainPrefix,format.dns1035LabelPrefix,format.labelValue () -> format
format.uri,format.uuid,format.byte,format.date,format.datetime () -> format
validate format.(string) -> optional(list(string))
path authorizer.(string) -> pathcheck
group authorizer.(string) -> groupcheck
serviceAccount authorizer.(string, string) -> authorizer
resource groupcheck.(string) -> resourcecheck
subresource,namespace,name,fieldSelector,labelSelector resourcecheck.(string) -> resourcecheck
check pathcheck.(string) -> decision | resourcecheck.(string) -> decision
errored,allowed decision.() -> bool
error,reason decision.() -> string
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read_from_the_table() {
        let shown = |name: &str| {
            let ways = of(name).iter().map(|way| {
                let target = way.target.as_ref().map(|target| format!("{target}.")).unwrap_or_default();
                let args: Vec<String> = way.args.iter().map(Type::to_string).collect();
                format!("{target}({}) {}", args.join(", "), way.result)
            });
            ways.collect::<Vec<_>>()
        };
        assert_eq!(shown("getQuery"), ["kubernetes.URL.() map(string, list(string))"]);
        assert_eq!(shown("@in"), ["(A, list(A)) bool", "(A, map(A, B)) bool"]);
        assert_eq!(shown("ip"), ["(string) net.IP", "net.CIDR.() net.IP"]);
        assert_eq!(shown("optional.unwrap"), ["(list(optional_type(A))) list(A)"]);
        assert_eq!(of("_<_").len(), 14);
        assert!(is_function("optional.none") && !is_function("join") && of("nothing").is_empty());
    }
}

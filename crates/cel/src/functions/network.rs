//! Functions on URLs, IP addresses and CIDRs.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use super::Context;
use crate::budget::{Budget, Failure, tenth};
use crate::value::{Key, Map, Url, Value};

/// The value of a function on what a network is made of, if there is one of this name.
pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    let budget = context.budget;
    match (name, args) {
        ("url" | "isURL" | "ip" | "isIP" | "ip.isCanonical" | "cidr" | "isCIDR", [Value::String(text)]) => {
            let size = text.chars().count() as u64;
            budget.work(text.len() as u64)?;
            budget.traverse(if name == "ip.isCanonical" { size.saturating_mul(2) } else { size })?;
            parsed(name, text).map(Some)
        }
        (_, [Value::Url(url)]) => of_url(name, url, budget),
        (_, [Value::Ip(address)]) => {
            budget.charge(1)?;
            Ok(of_address(name, address))
        }
        (_, [Value::Cidr(address, bits), rest @ ..]) => of_range(name, *address, *bits, rest, budget),
        _ => Ok(None),
    }
}

fn parsed<'a>(name: &str, text: &str) -> Result<Value<'a>, Failure> {
    let wrong =
        |what: &str| Failure::wrong(format!("{what} parse error during conversion from string: {text:?}"));
    Ok(match name {
        "url" => Value::Url(Rc::new(url(text).ok_or_else(|| wrong("URL"))?)),
        "isURL" => Value::Bool(url(text).is_some()),
        "ip" => Value::Ip(address(text).ok_or_else(|| wrong("IP Address"))?),
        "isIP" => Value::Bool(address(text).is_some()),
        "ip.isCanonical" => {
            let read = address(text).ok_or_else(|| wrong("IP Address"))?;
            Value::Bool(read.to_string() == text)
        }
        "cidr" => {
            let (address, bits) = range(text).ok_or_else(|| wrong("network address"))?;
            Value::Cidr(address, bits)
        }
        _ => Value::Bool(range(text).is_some()),
    })
}

/// An address without a zone, and not one of four bytes written as one of sixteen.
fn address(text: &str) -> Option<IpAddr> {
    let read: IpAddr = text.parse().ok()?;
    match read {
        IpAddr::V6(long) if long.to_ipv4_mapped().is_some() => None,
        read => Some(read),
    }
}

fn range(text: &str) -> Option<(IpAddr, u8)> {
    let (head, bits) = text.split_once('/')?;
    let address = address(head)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let plain = bits.bytes().all(|digit| digit.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    let bits: u8 = bits.parse().ok().filter(|bits| plain && *bits <= most)?;
    Some((address, bits))
}

/// A URL that says where something is: with a scheme, or beginning with a slash.
fn url(text: &str) -> Option<Url> {
    if text.chars().any(|letter| letter.is_control() || letter == ' ') {
        return None;
    }
    let (text, _) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    if text.starts_with('/') && !text.starts_with("//") {
        let part = |text: &str| text.to_owned();
        return Some(Url {
            scheme: String::new(),
            host: String::new(),
            path: part(text),
            query: part(query),
        });
    }
    let (scheme, rest) = text.split_once(':')?;
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    let after = rest.strip_prefix("//")?;
    let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = port_of(host);
    let fits = is_scheme && port.bytes().all(|digit| digit.is_ascii_digit());
    fits.then(|| Url {
        scheme: scheme.to_ascii_lowercase(),
        host: host.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
    })
}

fn port_of(host: &str) -> &str {
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after.rsplit_once(':').map_or("", |(_, port)| port)
}

fn of_url<'a>(name: &str, url: &Url, budget: &Budget) -> Result<Option<Value<'a>>, Failure> {
    budget.charge(1)?;
    let text = match name {
        "getScheme" => url.scheme.clone(),
        "getHost" => url.host.clone(),
        "getHostname" => {
            let port = port_of(&url.host);
            let host = url.host.strip_suffix(port).and_then(|host| host.strip_suffix(':'));
            let host = host.filter(|_| !port.is_empty()).unwrap_or(&url.host);
            host.trim_matches(['[', ']']).to_owned()
        }
        "getPort" => port_of(&url.host).to_owned(),
        "getEscapedPath" => url.path.clone(),
        "getQuery" => return query(&url.query, budget).map(Some),
        _ => return Ok(None),
    };
    Ok(Some(Value::text(text)))
}

fn query<'a>(text: &str, budget: &Budget) -> Result<Value<'a>, Failure> {
    budget.work(text.len() as u64)?;
    let mut all: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        all.entry(unescaped(key)).or_default().push(Value::text(unescaped(value)));
    }
    let entries = all.into_iter().map(|(key, values)| (Key::String(key.into()), Value::list(values)));
    Ok(Value::Map(Map::Made(Rc::new(entries.collect()))))
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut made = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        let code = bytes.get(index + 1..index + 3).and_then(|code| std::str::from_utf8(code).ok());
        match (byte, code.and_then(|code| u8::from_str_radix(code, 16).ok())) {
            (b'%', Some(escaped)) => {
                made.push(escaped);
                index += 2;
            }
            (b'+', _) => made.push(b' '),
            (byte, _) => made.push(*byte),
        }
        index += 1;
    }
    String::from_utf8_lossy(&made).into_owned()
}

fn of_address<'a>(name: &str, address: &IpAddr) -> Option<Value<'a>> {
    let local = |long: &Ipv6Addr| long.segments()[0] & 0xffc0 == 0xfe80;
    Some(Value::Bool(match name {
        "family" => return Some(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => address.is_unspecified(),
        "isLoopback" => address.is_loopback(),
        "isLinkLocalMulticast" => match address {
            IpAddr::V4(short) => short.octets()[..3] == [224, 0, 0],
            IpAddr::V6(long) => long.segments()[0] & 0xff0f == 0xff02,
        },
        "isLinkLocalUnicast" => match address {
            IpAddr::V4(short) => short.is_link_local(),
            IpAddr::V6(long) => local(long),
        },
        "isGlobalUnicast" => {
            let is_broadcast = matches!(address, IpAddr::V4(short) if short.is_broadcast());
            let is_local = match address {
                IpAddr::V4(short) => short.is_link_local(),
                IpAddr::V6(long) => local(long),
            };
            !(address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || is_broadcast
                || is_local)
        }
        _ => return None,
    }))
}

fn of_range<'a>(
    name: &str,
    address: IpAddr,
    bits: u8,
    rest: &[Value<'a>],
    budget: &Budget,
) -> Result<Option<Value<'a>>, Failure> {
    let size: u64 = if address.is_ipv4() { 4 } else { 16 };
    let wrong = || Failure::wrong("IP Address parse error during conversion from string");
    budget.charge(tenth(size * 2))?;
    let value = match (name, rest) {
        ("ip", []) => Value::Ip(address),
        ("prefixLength", []) => Value::Int(i64::from(bits)),
        ("masked", []) => Value::Cidr(masked(address, bits), bits),
        ("containsIP", [Value::Ip(other)]) => Value::Bool(within(address, bits, *other)),
        ("containsIP", [Value::String(text)]) => {
            budget.traverse(text.chars().count() as u64)?;
            Value::Bool(within(address, bits, self::address(text).ok_or_else(wrong)?))
        }
        ("containsCIDR", [other]) => {
            let (inner, inner_bits) = match other {
                Value::Cidr(inner, inner_bits) => (*inner, *inner_bits),
                Value::String(text) => {
                    budget.traverse(text.chars().count() as u64)?;
                    range(text).ok_or_else(wrong)?
                }
                _ => return Err(Failure::no_overload()),
            };
            Value::Bool(inner_bits >= bits && within(address, bits, masked(inner, inner_bits)))
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(short) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(short) & mask).into())
        }
        IpAddr::V6(long) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(long) & mask).into())
        }
    }
}

fn within(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    network.is_ipv4() == address.is_ipv4() && masked(network, bits) == masked(address, bits)
}

//! Overload resolution: whether arguments fit a signature, and the result type. A letter in a signature is a type
//! parameter.

use std::sync::Arc;

use super::Known;
use crate::signatures::Signature;
use crate::types::Type;

type Bound = [Option<Type>; 4];

/// The type of a call's result if the call fits the signature.
pub(super) fn result(way: &Signature, target: Option<&Known>, args: &[Known]) -> Option<Type> {
    if way.args.len() != args.len() || way.target.is_some() != target.is_some() {
        return None;
    }
    let mut bound: Bound = Default::default();
    let given = target.into_iter().chain(args);
    let wanted = way.target.iter().chain(&way.args);
    let fits = wanted.zip(given).all(|(wanted, given)| fits(wanted, &given.kind, &mut bound));
    fits.then(|| filled(&way.result, &bound))
}

fn fits(wanted: &Type, given: &Type, bound: &mut Bound) -> bool {
    match (wanted, given) {
        (_, Type::Dyn(_)) | (Type::Dyn(_), _) => true,
        (Type::Param(number), given) => {
            let Some(place) = bound.get_mut(usize::from(*number)) else { return false };
            match place {
                Some(known) if !known.is_dyn() => compatible(known, given),
                _ => {
                    *place = Some(given.clone());
                    true
                }
            }
        }
        (Type::List(wanted, _), Type::List(given, _)) => fits(wanted, given, bound),
        (Type::Map(key, value, _), Type::Map(given_key, given_value, _)) => {
            fits(key, given_key, bound) && fits(value, given_value, bound)
        }
        (Type::Optional(wanted), Type::Optional(given)) => fits(wanted, given, bound),
        (wanted, given) => compatible(wanted, given),
    }
}

/// Whether two types can be those of one value.
pub(super) fn compatible(one: &Type, two: &Type) -> bool {
    match (one, two) {
        (Type::Dyn(_), _) | (_, Type::Dyn(_)) => true,
        (Type::Null, other) | (other, Type::Null) => matches!(
            other,
            Type::Null
                | Type::Object(_)
                | Type::Timestamp(_)
                | Type::Duration(_)
                | Type::Opaque(_)
                | Type::Optional(_)
        ),
        (Type::List(one, _), Type::List(two, _)) | (Type::Optional(one), Type::Optional(two)) => {
            compatible(one, two)
        }
        (Type::Map(key, value, _), Type::Map(key2, value2, _)) => {
            compatible(key, key2) && compatible(value, value2)
        }
        (one, two) => one.same(two),
    }
}

fn filled(kind: &Type, bound: &Bound) -> Type {
    match kind {
        Type::Param(number) => bound.get(usize::from(*number)).cloned().flatten().unwrap_or(Type::ANY),
        Type::List(element, size) => Type::List(Arc::new(filled(element, bound)), *size),
        Type::Map(key, value, size) => {
            Type::Map(Arc::new(filled(key, bound)), Arc::new(filled(value, bound)), *size)
        }
        Type::Optional(inner) => Type::Optional(Arc::new(filled(inner, bound))),
        other => other.clone(),
    }
}

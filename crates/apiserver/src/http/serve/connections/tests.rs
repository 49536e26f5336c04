//! Which connection is closed when there is no room.

use super::*;

fn limits(total: usize, per_address: usize) -> ConnectionLimits {
    let limits = ConnectionLimits { per_address, is_loopback_exempt: false, ..ConnectionLimits::default() };
    ConnectionLimits { reserved: 2, ..limits.at_most(total) }
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn is_closed(permit: &ConnectionPermit) -> bool {
    permit.closed.is_cancelled()
}

fn user(permit: &ConnectionPermit, name: &str) -> bool {
    permit.handle().authenticated(&Identity::named(name, [])).is_ok()
}

#[tokio::test]
async fn the_address_with_the_most_unauthenticated_connections_makes_room() {
    let connections = Connections::new(limits(5, 10));
    let honest = connections.admit(address(1)).expect("there is room");
    let hostile: Vec<_> = (0..4).filter_map(|_| connections.admit(address(2))).collect();
    let newcomer = connections.admit(address(3)).expect("another makes room");
    assert!(is_closed(&hostile[0]), "the oldest of the largest address goes");
    assert!(!is_closed(&honest) && !is_closed(&newcomer) && !hostile[1..].iter().any(is_closed));
}

#[tokio::test]
async fn an_address_has_its_limit_and_the_networks_of_ipv6_are_one() {
    let connections = Connections::new(limits(100, 2));
    let of = |text: &str| connections.admit(text.parse().expect("an address")).expect("there is room");
    let (first, second, third) = (of("2001:db8::1"), of("2001:db8::2"), of("2001:db8::3"));
    assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
    let mapped: Vec<_> = (0..2).map(|_| of("::ffff:10.0.0.1")).collect();
    let _plain = of("10.0.0.1");
    assert!(is_closed(&mapped[0]), "an address of IPv4 is the same in either representation");
}

#[tokio::test]
async fn users_leave_room_for_administrators_who_are_never_closed() {
    let connections = Connections::new(limits(5, 10));
    let root = connections.admit(address(1)).expect("there is room");
    root.handle().authenticated(&Identity::named("root", [crate::authn::ADMINISTRATORS])).expect("let in");
    let tenants: Vec<_> = (0..3).filter_map(|_| connections.admit(address(2))).collect();
    assert!(tenants.iter().all(|tenant| user(tenant, "eve")));
    let busy = tenants[0].handle().begin_request();
    let other = connections.admit(address(3)).expect("there is room");
    assert!(user(&other, "bob"));
    assert!(!is_closed(&tenants[0]) && is_closed(&tenants[1]), "an idle one of the largest user goes");
    let unauthenticated_clients: Vec<_> = (0..20).filter_map(|_| connections.admit(address(4))).collect();
    assert_eq!(unauthenticated_clients.len(), 20, "a new one always gets in");
    assert!(!is_closed(&root) && !is_closed(&other) && !is_closed(&tenants[0]));
    drop(busy);
}

#[tokio::test]
async fn an_address_full_of_requests_is_refused_unless_an_administrator_asks() {
    let connections = Connections::new(limits(100, 2));
    let busy: Vec<_> = (0..2).filter_map(|_| connections.admit(address(1))).collect();
    assert!(busy.iter().all(|one| user(one, "eve")));
    let _requests: Vec<_> = busy.iter().map(|one| one.handle().begin_request()).collect();
    let more = connections.admit(address(1)).expect("it may say who it is");
    assert!(!user(&more, "bob"), "everything of this address is at work");
    assert!(!is_closed(&busy[0]) && !is_closed(&busy[1]));
    let root = Identity::named("root", [crate::authn::ADMINISTRATORS]);
    assert!(more.handle().authenticated(&root).is_ok());
}

#[tokio::test(start_paused = true)]
async fn idle_connections_expire_and_busy_ones_do_not() {
    let connections = Connections::new(limits(100, 10));
    let begun = Instant::now();
    let unauthenticated = connections.admit(address(1)).expect("there is room");
    let request = unauthenticated.handle().begin_request();
    unauthenticated.expired().await;
    assert_eq!(begun.elapsed().as_secs(), 20, "a request that proves nothing extends nothing");
    drop(request);
    let known = connections.admit(address(1)).expect("there is room");
    assert!(user(&known, "eve"));
    let request = known.handle().begin_request();
    tokio::time::timeout(Duration::from_secs(1_000), known.expired()).await.expect_err("it works");
    drop(request);
    let begun = Instant::now();
    known.expired().await;
    assert_eq!(begun.elapsed().as_secs(), 90);
}

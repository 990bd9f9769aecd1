"""The tests of isolation, with the two sites in two cells of one server (the fixture `pair` of this folder)."""

from tests.robustness.test_isolation import (
    test_etags_of_other_site_do_not_match,
    test_host_matching_ignores_case_and_port,
    test_idempotency_keys_are_scoped_to_site,
    test_only_host_header_selects_site,
    test_records_of_one_site_are_accessible_to_its_users,
    test_records_users_and_images_of_other_site_cannot_be_linked,
    test_routes_do_not_reveal_or_change_other_site,
    test_routes_reject_users_of_other_site,
    test_unknown_host_is_404_on_all_routes,
)

__all__ = [
    "test_etags_of_other_site_do_not_match",
    "test_host_matching_ignores_case_and_port",
    "test_idempotency_keys_are_scoped_to_site",
    "test_only_host_header_selects_site",
    "test_records_of_one_site_are_accessible_to_its_users",
    "test_records_users_and_images_of_other_site_cannot_be_linked",
    "test_routes_do_not_reveal_or_change_other_site",
    "test_routes_reject_users_of_other_site",
    "test_unknown_host_is_404_on_all_routes",
]

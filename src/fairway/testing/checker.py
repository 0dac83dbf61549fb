"""The checker: every check over one history.

Guards: what it reports is proven by the history alone; what callers could not see is never held against the queue.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.testing.checks import (
    accepted,
    answers,
    batches,
    ceilings,
    choices,
    content,
    counts,
    events,
    finals,
    held,
    leases,
    leavings,
    lives,
    named,
    numbers,
    order,
    reasons,
    refusals,
    shares,
    steps,
    timing,
    waiting,
)
from fairway.testing.history import History
from fairway.testing.violation import Violation

Check = Callable[[History], list[Violation]]

CHECKS: tuple[Check, ...] = (
    numbers.check_calls_are_whole,
    numbers.check_same_number_same_answer,
    numbers.check_calls_are_answered,
    numbers.check_received_numbers_are_dropped,
    numbers.check_unanswered_numbers_are_kept,
    numbers.check_clients_are_remembered,
    answers.check_answers_fit_their_calls,
    answers.check_errors_are_known,
    answers.check_batches_fit,
    answers.check_every_chunk_has_an_outcome,
    answers.check_renewals_last,
    refusals.check_refusals_have_a_cause,
    accepted.check_accepted_is_found,
    accepted.check_accepted_as_offered,
    accepted.check_one_effect,
    accepted.check_ids_rise,
    accepted.check_keys_name_one_submission,
    accepted.check_conflicts_are_real,
    accepted.check_ends_have_a_cause,
    accepted.check_one_end_per_life,
    accepted.check_nothing_is_lost,
    accepted.check_what_is_over_leaves,
    leavings.check_nothing_is_left,
    leases.check_receipts_are_unique,
    leases.check_no_double_lease,
    leases.check_latest_receipt_wins,
    leases.check_stale_receipts_are_refused,
    leases.check_good_receipts_count,
    leases.check_already_means_done,
    leases.check_forged_receipts_are_refused,
    leases.check_settled_receipts_were_given,
    leases.check_receipts_end_with_their_life,
    ceilings.check_ceilings_hold,
    ceilings.check_limits_open_again,
    finals.check_nothing_after_final,
    finals.check_nothing_after_end,
    finals.check_dead_letters_are_dead,
    finals.check_dead_letters_are_listed,
    reasons.check_reasons_are_those_given,
    finals.check_attempts_are_bounded,
    finals.check_attempts_are_counted,
    finals.check_deliveries_are_bounded,
    finals.check_no_retry_is_dead,
    finals.check_deaths_have_a_cause,
    finals.check_fail_fast_ends,
    finals.check_deadlines_hold,
    lives.check_redrives_start_over,
    lives.check_lives_have_all_attempts,
    timing.check_not_before_due,
    timing.check_times_as_asked,
    timing.check_back_off_holds,
    timing.check_pauses_hold,
    timing.check_waits_last,
    content.check_payloads_are_unaltered,
    content.check_results_are_kept,
    content.check_winners_are_true,
    counts.check_counts_agree,
    counts.check_counts_match_callers,
    counts.check_counters_count,
    counts.check_drained_is_empty,
    held.check_leases_match_callers,
    events.check_events_are_told,
    events.check_events_happened_once,
    named.check_named_is_handed_back,
    named.check_taken_over_is_halved,
    named.check_one_seq_one_reservation,
    named.check_consumers_are_fenced,
    named.check_consumers_are_listed,
    named.check_trimmed_is_gone,
    batches.check_finished_is_settled,
    batches.check_whole_batches_are_whole,
    order.check_fifo_inside_a_tenant,
    order.check_no_wrong_empty_answer,
    waiting.check_first_come_first_served,
    choices.check_selections_hold,
    choices.check_orders_hold,
    steps.check_earlier_steps_come_first,
    shares.check_fair_shares,
    shares.check_fair_shares_of_selections,
)


def check_history(history: History) -> list[Violation]:
    """Everything that the history proves to be wrong."""
    unreadable = answers.check_answers_fit_their_calls(history)
    if unreadable:
        return unreadable
    return [violation for check in CHECKS for violation in check(history)]

"""The rate limit of messages is one for all pages of a person, and does not affect other people."""

from chat.limits import BURST, MAX_DELAY, MESSAGES_PER_SECOND, MessagePace

ADA, EVE = 1, 2


def flooded(seconds):
    """Send three messages a second from each of sixty pages; return the pace and how many were accepted."""
    pace, read = MessagePace(), 0
    for number in range(int(180 * seconds)):
        read += pace.delay(ADA, number / 180) is not None
    return pace, read


def test_sixty_pages_of_one_person_share_one_rate():
    _, read = flooded(60)
    assert read <= BURST + (60 + MAX_DELAY) * MESSAGES_PER_SECOND + 1


def test_an_overlong_wait_is_refused_and_other_people_do_not_wait():
    pace, _ = flooded(60)
    assert None in [pace.delay(ADA, 60.0) for _ in range(3)]
    assert pace.delay(EVE, 60.0) == 0


def test_a_hundred_reconnecting_pages_do_not_wait():
    pace = MessagePace()
    assert [pace.delay(ADA, 0.0) for _ in range(100)] == [0.0] * 100


def test_the_rate_recovers_and_idle_people_are_forgotten():
    pace, _ = flooded(60)
    assert pace.delay(ADA, 600.0) == 0
    for user in range(10, 10 + 2 * BURST):
        pace.delay(user, 600.0 + user)
    assert len(pace._due) <= BURST + 1

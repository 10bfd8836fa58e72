from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from caplens.text.ngrams import count_ngrams

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join), min_size=1, max_size=3)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), st.integers(1, 4))
def test_counts_are_those_of_a_dictionary(entries_of, cases, n):
    candidates, references = [texts[0] for texts, _ in cases], [texts for _, texts in cases]
    entries = entries_of(candidates, references)
    counted = count_ngrams(entries, n)
    texts = [*candidates, *(text for of_entry in references for text in of_entry)]
    expected = Counter()
    for number, text in enumerate(texts):
        words = text.split()
        expected.update((number, tuple(words[i : i + n])) for i in range(len(words) - n + 1))
    # Grams are told apart by key; which key means which words follows from where they stand.
    assert sorted(counted.count.tolist()) == sorted(expected.values())
    per_text = Counter()
    for (number, _), count in expected.items():
        per_text[number, count] += 1
    assert Counter(zip(counted.text.tolist(), counted.count.tolist(), strict=True)) == per_text
    assert len(counted.keys) == len({words for _, words in expected}) == len(set(counted.keys.tolist()))
    assert (counted.pair // max(len(entries), 1) == counted.gram).all()


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), st.integers(1, 30))
def test_chunks_put_together_are_the_whole(entries_of, cases, size):
    entries = entries_of([texts[0] for texts, _ in cases], [texts for _, texts in cases])
    assert [pair for chunk in entries.chunks(size) for pair in chunk.strings()] == list(entries.strings())


def test_a_vocabulary_too_large_for_digits_is_hashed_without_clashes(entries_of):
    words = [f"w{i}" for i in range(70_000)]
    assert len(words) ** 4 > 2**64
    text = " ".join(words)
    counted = count_ngrams(entries_of([text], [[text]]), 4)
    assert len(set(counted.keys.tolist())) == len(words) - 3

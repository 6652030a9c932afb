"""Fit the weights of chat/verification/checks/credence.py by logistic regression on labelled statements.

    PYTHONPATH=. python benchmarks/fit_credence.py

Statements that a fact contradicts are left out, because they count as not found whatever the weights are.
Prints the result of cross-validation by document for several bounds, then the weights of a fit to all
statements. The product uses the weights without the constant term BIAS, so its bound of 0 is the bound BIAS
of this table.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from bench_verification import SETS, all_places, statements

from chat.verification import verdicts

RIDGE = 3.0
FOLDS = 8
STEPS = 30
PARAPHRASED = ("fourth", "sixth", "seventh", "eighth", "ninth")


def main() -> None:
    places = all_places()
    seen: list[dict[str, float]] = []
    verdicts.credence = lambda signs: seen.append(dict(signs)) or 1.0  # type: ignore[assignment,func-returns-value]
    rows, truths, documents, late = [], [], [], []
    left_out = {True: 0, False: 0}
    for name in SETS:
        for kind, place, _statement, _found in statements(name, places):
            is_true = kind == "true"
            if name in PARAPHRASED:
                left_out[is_true] += not seen
            if seen:
                rows.append(seen[0])
                truths.append(is_true)
                documents.append(place.partition("/")[0])
                late.append(name in PARAPHRASED)
            seen.clear()
    signs = list(rows[0])
    matrix = np.array([[float(row[sign]) for sign in signs] for row in rows])
    truth = np.array(truths, float)
    chosen = np.array(late)
    folds = {document: place % FOLDS for place, document in enumerate(sorted(set(documents)))}
    fold = np.array([folds[document] for document in documents])
    scores = np.zeros(len(rows))
    for place in range(FOLDS):
        weights, bias = fit(matrix[fold != place], truth[fold != place])
        scores[fold == place] = matrix[fold == place] @ weights + bias
    print(f"{len(rows)} statements; of the paraphrased, contradicted: true and false", *left_out.values())
    print("of the paraphrased ones: bound, true supported, false supported")
    for bound in np.arange(-0.5, 1.6, 0.25):
        shares = [
            (scores[chosen & (truth == side)] >= bound).sum()
            / ((chosen & (truth == side)).sum() + left_out[bool(side)])
            for side in (1, 0)
        ]
        print(f"  {bound:.2f}: {shares[0]:.3f}, {shares[1]:.3f}")
    weights, bias = fit(matrix, truth)
    print(f"BIAS = {bias:.2f}")
    for sign, weight in zip(signs, weights, strict=True):
        print(f'    "{sign}": {weight:.2f},')


def fit(matrix: Any, truth: Any) -> tuple[Any, float]:
    """Fit by Newton's method with a ridge on standardised signs; return weights of the unscaled signs."""
    mean, deviation = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
    inputs = np.c_[(matrix - mean) / deviation, np.ones(len(matrix))]
    ridge = np.diag([RIDGE] * matrix.shape[1] + [0.0])
    weights = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (likely - truth) + ridge @ weights
        weights -= np.linalg.solve((inputs.T * (likely * (1 - likely))) @ inputs + ridge, slope)
    scaled = weights[:-1] / deviation
    return scaled, float(weights[-1] - mean @ scaled)


if __name__ == "__main__":
    main()

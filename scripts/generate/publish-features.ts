/** The comparisons in `README.md` and `docs/coming-from.md`, from `docs/features.toml`. Pure. */
import { parse } from 'smol-toml';
import { z } from 'zod';
import { alignedTable } from './publish-reference.ts';

const Has = z.enum(['yes', 'partly', 'no']);
const Peer = z.strictObject({
  name: z.string(),
  read: z.string().regex(/^\d{4}-\d{2}$/),
  sources: z.record(z.string(), z.url()),
});
/** What a peer has, the key of the source, and a note. */
const Fact = z.tuple([Has, z.string()]).or(z.tuple([Has, z.string(), z.string()]));
const PEERS = z.record(z.string(), Fact).optional();
const Feature = z
  .strictObject({
    id: z.string(),
    /** The row in the README; without it the feature has none. */
    name: z.string().optional(),
    page: z.string(),
    test: z.strictObject({ file: z.string(), name: z.string() }),
    has: Has.default('yes'),
    note: z.string().optional(),
    peers: PEERS,
    from: z.array(z.tuple([z.string(), z.string(), z.string()])).default([]),
  })
  .refine(({ name, peers }) => (name === undefined) === (peers === undefined), 'A feature with a name needs peers, and peers need a name');
const Absent = z.strictObject({
  id: z.string(),
  name: z.string().optional(),
  peers: PEERS,
  /** The row of "What is not available". */
  need: z.string(),
  here: z.string(),
  /** Without a third part, the row of the product refers to "What is not available". */
  from: z.array(z.tuple([z.string(), z.string()]).or(z.tuple([z.string(), z.string(), z.string()]))).default([]),
});
const Features = z.strictObject({ peers: z.record(z.string(), Peer), features: z.array(Feature), absent: z.array(Absent) });
export type Features = z.output<typeof Features>;

/** Throws if the file has a mistake, names an unknown peer or source, or leaves a peer out of a comparison. */
export function parseFeatures(text: string): Features {
  const features = Features.parse(parse(text));
  const compared = comparedPeers(features);
  for (const { id, peers, from } of [...features.features, ...features.absent]) {
    const unknown = from.map(([peer]) => peer).filter((peer) => features.peers[peer] === undefined);
    const unsourced =
      peers === undefined ? [] : compared.filter((peer) => features.peers[peer]?.sources[peers[peer]?.[1] ?? ''] === undefined);
    if (unknown.length > 0) throw new Error(`"${id}" names unknown products: ${unknown.join(', ')}`);
    if (unsourced.length > 0) throw new Error(`"${id}" has no fact with a known source about ${unsourced.join(', ')}`);
  }
  return features;
}

/** The products that have facts, in their order in the file. */
function comparedPeers({ peers, features, absent }: Features): readonly string[] {
  return Object.keys(peers).filter((peer) => [...features, ...absent].some((entry) => entry.peers?.[peer] !== undefined));
}

const MARKS = { yes: '●', partly: '◐', no: '○' } as const;

/** The table of the README, with its notes below it. */
export function comparisonTable(features: Features): string {
  const compared = comparedPeers(features);
  const notes: string[] = [];
  const mark = (has: z.output<typeof Has>, note: string | undefined): string => {
    if (note === undefined) return MARKS[has];
    if (!notes.includes(note)) notes.push(note);
    return `${MARKS[has]} ${superscript(notes.indexOf(note) + 1)}`;
  };
  const row = (name: string, own: string, peers: z.output<typeof PEERS> = {}): readonly string[] => [
    name,
    own,
    ...compared.map((peer) => {
      const [has, , note] = peers[peer] ?? ['no'];
      return mark(has, note);
    }),
  ];
  const rows = [
    ...features.features.flatMap(({ name, page, has, note, peers }) =>
      name === undefined ? [] : [row(`[${name}](${page})`, mark(has, note), peers)],
    ),
    ...features.absent.flatMap(({ name, peers }) => (name === undefined ? [] : [row(`[${name}](SCOPE.md)`, MARKS.no, peers)])),
  ];
  const table = alignedTable(['', 'svc', ...compared.map((peer) => features.peers[peer]?.name ?? peer)], rows);
  return [...table, '', notes.map((note, index) => `${superscript(index + 1)} ${note}.`).join(' ')].join('\n');
}

function superscript(number: number): string {
  return String(number).replaceAll(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'.charAt(Number(digit)));
}

export function absentTable({ absent }: Features): string {
  return alignedTable(
    ['You need', 'Here'],
    absent.map(({ need, here }) => [need, here]),
  ).join('\n');
}

/** What users of a product write here instead, and last what is not available. */
export function migrationTable({ peers, features, absent }: Features, product: string): string {
  const there = features.flatMap(({ from }) => from).filter(([peer]) => peer === product);
  const not = absent
    .flatMap(({ from }) => from)
    .filter(([peer]) => peer === product)
    .map(([peer, word, instead = 'see [above](#what-is-not-available)']) => [peer, word, `not available: ${instead}`]);
  return alignedTable(
    [peers[product]?.name ?? product, 'Here'],
    [...there, ...not].map(([, word = '', here = '']) => [word, here]),
  ).join('\n');
}

export function sourceTable({ peers }: Features): string {
  const rows = Object.values(peers).map(({ name, read, sources }) => [
    name,
    read,
    Object.entries(sources)
      .map(([key, url]) => `[${key}](${url})`)
      .join(', '),
  ]);
  return alignedTable(['Product', 'Read', 'Sources'], rows).join('\n');
}

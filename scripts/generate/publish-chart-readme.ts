/** Generates helm/svc/README.md: the description of a value is the comment above its key in values.yaml, its type is that of the schema of the values. Pure. */
import { isCollection, isMap, isScalar, parseDocument, type YAMLMap } from 'yaml';
import { isTable } from '../../src/schema/words/key-case.ts';
import type { Json } from './map-schema.ts';
import { code, page, table } from './publish-reference.ts';

export interface ChartValue {
  /** Names of the keys, joined with ".". */
  readonly key: string;
  readonly type: string;
  /** As YAML in one line; empty for a table whose keys follow as values of their own. */
  readonly fallback: string;
  readonly description: string;
}

/** Longer defaults make the table unreadable. */
const LONGEST_DEFAULT = 60;

export function chartReadme(valuesText: string, schema: Json): string {
  const rows = chartValues(valuesText, schema).map(({ key, type, fallback, description }) => [
    code(key),
    type,
    fallback === '' ? '' : fallback.length > LONGEST_DEFAULT ? 'see [values.yaml](values.yaml)' : code(fallback),
    description.replaceAll('<', '&lt;'),
  ]);
  return page('Chart "svc"', [
    'Installs the gateway and controller of `svc` into a namespace, and the definition of `SlotSpec`. How to use them is described in',
    '[On Kubernetes](../../docs/cluster.md). Kubernetes 1.29 or newer is required.',
    '',
    '```sh',
    'helm install svc helm/svc --namespace svc --create-namespace --values values.yaml',
    'helm test svc --namespace svc --logs     # is the gateway ready, and does it list its models?',
    'kubectl apply --server-side -k crds      # before each upgrade: Helm does not upgrade definitions',
    'helm upgrade svc helm/svc --namespace svc --values values.yaml',
    '```',
    '',
    'There is one release for each namespace, because all gateways of a namespace are one service. Helm refuses to install a second one: the object',
    '`svc-one-release-per-namespace` then belongs to another release. Releases in different namespaces do not affect each other.',
    '',
    'The folder [examples](examples) has values for common clusters. Helm checks values with [values.schema.json](values.schema.json) before it renders anything.',
    '',
    '## Values',
    '',
    '[values.yaml](values.yaml) has examples for many of them.',
    '',
    ...table(['Value', 'Type', 'Default', 'Meaning'], rows),
  ]);
}

/** Returns the values in the order of the file. Tables whose keys belong to users, such as labels, are one value. */
export function chartValues(valuesText: string, schema: Json): readonly ChartValue[] {
  const { contents } = parseDocument(valuesText);
  return isMap(contents) ? valuesOf(contents, { schema, path: [], text: valuesText }) : [];
}

interface Place {
  readonly schema: Json;
  readonly path: readonly string[];
  readonly text: string;
}

function valuesOf(map: YAMLMap, place: Place): readonly ChartValue[] {
  return map.items.flatMap(({ key, value }): readonly ChartValue[] => {
    if (!isScalar(key) || !key.range) return [];
    const path = [...place.path, String(key.value)];
    const properties = isTable(place.schema['properties']) ? place.schema['properties'] : {};
    const found = properties[String(key.value)];
    const schema = isTable(found) ? found : {};
    const inner = withoutNull(schema);
    const description = commentAbove(place.text, key.range[0]);
    if (isMap(value) && value.items.length > 0 && isClosed(inner)) {
      const group = { key: path.join('.'), type: 'table', fallback: '', description };
      return [...(description === '' ? [] : [group]), ...valuesOf(value, { ...place, schema: inner, path })];
    }
    const data: unknown = isScalar(value) ? value.value : isCollection(value) ? value.toJSON() : null;
    return [{ key: path.join('.'), type: typeOf(schema), fallback: JSON.stringify(data ?? null), description }];
  });
}

/** Whether the schema lists all keys that a table may have. */
function isClosed(schema: Json): boolean {
  return schema['additionalProperties'] === false && isTable(schema['properties']);
}

function withoutNull(schema: Json): Json {
  const choices = Array.isArray(schema['anyOf']) ? schema['anyOf'].filter(isTable).filter(({ type }) => type !== 'null') : [];
  const [only, ...others] = choices;
  return only !== undefined && others.length === 0 ? only : schema;
}

/** Joins the lines of the comment directly above an offset, up to the first line of an example, which is indented further than the text. */
function commentAbove(text: string, offset: number): string {
  const above = text.slice(0, offset).split('\n').slice(0, -1);
  const end = above.findLastIndex((line) => !/^\s*#/.test(line)) + 1;
  const comment = above.slice(end).map((line) => line.replace(/^\s*# ?/, ''));
  const example = comment.findIndex((line) => /^\s{2,}/.test(line));
  return (example === -1 ? comment : comment.slice(0, example)).join(' ');
}

function typeOf(schema: Json): string {
  const { enum: choices, anyOf, type, items } = schema;
  if (Array.isArray(choices)) return choices.map((choice) => code(choice === '' ? '""' : String(choice))).join(', ');
  if (schema['const'] !== undefined) return '';
  if (Array.isArray(anyOf)) return [...new Set(anyOf.filter(isTable).map(typeOf))].filter((each) => each !== '').join(' or ');
  if (type === 'array') return isTable(items) ? `list of ${typeOf(items)}${Array.isArray(items['enum']) ? '' : 's'}` : 'list';
  return type === 'object' ? 'table' : typeof type === 'string' ? type : '';
}

/** YAML as kubectl and the API server read it: version 1.1, with the octal numbers of 1.2 and without dates and base-60 numbers. Pure. */
import { parseAllDocuments, stringify, type Document, type LineCounter, type ScalarTag, type Tags } from 'yaml';

const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  identify: () => false,
  test: /^[-+]?0o[0-7]+$/,
  resolve: (text) => Number(text.replace(/^[-+]/, '')) * (text.startsWith('-') ? -1 : 1),
};

export function parseYaml(text: string, lineCounter: LineCounter): readonly Document[] {
  const customTags = (tags: Tags): Tags => [...tags.filter((tag) => !isUnknownToKubernetes(tag)), OCTAL];
  const documents = parseAllDocuments(text, { version: '1.1', uniqueKeys: true, customTags, lineCounter });
  return Array.isArray(documents) ? documents : [];
}

/** Quotes every text that a reader of YAML 1.1 or 1.2 could take for something else: "on", "12:30", "0o17". */
export function writeYaml(value: unknown): string {
  return stringify(value, { version: '1.1', customTags: (tags) => [...tags, OCTAL] });
}

function isUnknownToKubernetes(tag: Tags[number]): boolean {
  return typeof tag !== 'string' && (tag.tag === 'tag:yaml.org,2002:timestamp' || ('format' in tag && tag.format === 'TIME'));
}

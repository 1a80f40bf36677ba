/** YAML as kubectl and the API server read it: version 1.1, with the octal numbers of 1.2 and without dates and base-60 numbers. Pure. */
import {
  stringify,
  type CreateNodeOptions,
  type DocumentOptions,
  type ParseOptions,
  type ScalarTag,
  type SchemaOptions,
  type Tags,
  type ToStringOptions,
} from 'yaml';

const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  identify: () => false,
  test: /^[-+]?0o[0-7]+$/,
  resolve: (text) => Number(text.replace(/^[-+]/, '')) * (text.startsWith('-') ? -1 : 1),
};

export const AS_KUBERNETES: ParseOptions & DocumentOptions & SchemaOptions = {
  version: '1.1',
  uniqueKeys: true,
  customTags: (tags) => [...tags.filter((tag) => !isNotInKubernetes(tag)), OCTAL],
};

/** Quotes every text that a reader of YAML 1.1 or 1.2 could take for something else: "on", "12:30", "0o17". */
const QUOTED: DocumentOptions & SchemaOptions & ParseOptions & CreateNodeOptions & ToStringOptions = {
  version: '1.1',
  customTags: (tags) => [...tags, OCTAL],
};

export function writeYaml(value: unknown): string {
  return stringify(value, QUOTED);
}

function isNotInKubernetes(tag: Tags[number]): boolean {
  return typeof tag !== 'string' && (tag.tag === 'tag:yaml.org,2002:timestamp' || ('format' in tag && tag.format === 'TIME'));
}

/** The JSON Schema that editors check and complete slot files with: the same schema with the keys of TOML. Pure. */
import { z } from 'zod';
import { isTable, renameKey } from '../../src/schema/key-case.ts';
import { SlotDocument } from '../../src/schema/slot-spec.ts';

type Json = Readonly<Record<string, unknown>>;

/** Draft 7: what Taplo and the extensions built on it read. */
export function slotEditorSchema(): Json {
  const schema = inSnakeCase(z.toJSONSchema(SlotDocument, { io: 'input', target: 'draft-07' }));
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'A slot of svc',
    description: 'One file a slot: /etc/svc/slots/<slot>.toml. The name of the file is the name of the slot',
    ...(isTable(schema) ? schema : {}),
  };
}

function inSnakeCase(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(inSnakeCase);
  if (!isTable(node)) return node;
  const entries = Object.entries(node).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
    if (key === 'properties' && isTable(value)) {
      return [[key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [renameKey(name), inSnakeCase(inner)]))]];
    }
    if (key === 'required' && Array.isArray(value)) return [[key, value.map((name) => renameKey(String(name)))]];
    // Values of people, and formats that only zod knows.
    if (key === 'default' || key === 'enum' || key === 'const') return [[key, value]];
    if (key === 'format' && value !== 'date-time') return [];
    return [[key, inSnakeCase(value)]];
  });
  return Object.fromEntries(entries);
}

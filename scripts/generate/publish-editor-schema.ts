/** Generates the JSON Schema with which editors validate and complete slot files. Its keys are those of TOML. Pure. */
import { z } from 'zod';
import { isTable, renameKey } from '../../src/schema/key-case.ts';
import { SlotDocument } from '../../src/schema/slot-spec.ts';

type Json = Readonly<Record<string, unknown>>;

/** Taplo and the editor extensions based on it read draft 7. */
export function slotEditorSchema(): Json {
  const schema = inSnakeCase(z.toJSONSchema(SlotDocument, { io: 'input', target: 'draft-07' }));
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'A slot of svc',
    description: 'Each slot is a file, /etc/svc/slots/<slot>.toml. The name of the file is the name of the slot',
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
    // Values are not renamed. Formats other than date-time are known only to zod.
    if (key === 'default' || key === 'enum' || key === 'const') return [[key, value]];
    if (key === 'format' && value !== 'date-time') return [];
    return [[key, inSnakeCase(value)]];
  });
  return Object.fromEntries(entries);
}

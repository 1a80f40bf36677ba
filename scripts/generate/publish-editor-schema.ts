/** Generates the JSON Schema with which editors validate and complete slot files. Its keys are those of TOML. Pure. */
import { z } from 'zod';
import { isTable, renameKey } from '../../src/schema/words/key-case.ts';
import { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { mapSchema, withoutLimits, type Json } from './map-schema.ts';

/** Taplo and the editor extensions based on it read draft 7. */
export function slotEditorSchema(): Json {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'A slot of svc',
    description: 'Each slot is a file, /etc/svc/slots/<slot>.toml. The name of the file is the name of the slot',
    ...mapSchema(z.toJSONSchema(SlotDocument, { io: 'input', target: 'draft-07' }), inSnakeCase),
  };
}

function inSnakeCase(node: Json): Json {
  const { properties, required } = node;
  return {
    ...withoutLimits(node),
    ...(isTable(properties) && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, inner]) => [renameKey(name), inner])),
    }),
    ...(Array.isArray(required) && { required: required.map((name) => renameKey(String(name))) }),
  };
}

/** Parses an API server's rejection of a resource into problems of its fields. Pure. */
import type { SpecProblem } from '../../../schema/slot/slot-spec.ts';

/** `spec.model.default`, `spec.tolerations[2].effect`, or `<nil>` for the whole object. */
const FIELD = String.raw`<nil>|(?:spec|metadata|status)(?:\.[\w-]+|\[[^\]]*\])*`;
const FIRST_FIELD = new RegExp(`^(${FIELD}): `);
/** Where the next field of a list begins: `, spec.priority: `. */
const BEFORE_NEXT_FIELD = new RegExp(`, (?=(?:${FIELD}): )`);

/** Accompanies other problems, and only reports that there may be more. */
const NOT_CHECKED = 'some validation rules were not checked because the object was invalid';

/** `SlotSpec.inference.svc.dev "img" is invalid: [spec.model.default: Required value, spec.priority: Invalid value: 5000: …]` */
export function parseRejection(message: string): readonly SpecProblem[] {
  const text = message.replace(/^.*? is invalid: /s, '');
  const list = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const problems = list.split(BEFORE_NEXT_FIELD).map(parseProblem);
  const specific = problems.filter((problem) => !problem.message.includes(NOT_CHECKED));
  return specific.length === 0 ? problems : specific;
}

function parseProblem(text: string): SpecProblem {
  const [prefix = '', field = '<nil>'] = FIRST_FIELD.exec(text) ?? [];
  return { path: pathOf(field), message: text.slice(prefix.length), style: 'camelCase' };
}

/** Returns the path in the schema of a slot, which has no `spec`. */
function pathOf(field: string): readonly (string | number)[] {
  if (field === '<nil>') return [];
  const parts = [...field.matchAll(/([\w-]+)|\[([^\]]*)\]/g)].map(([, name, key = '']) => name ?? (/^\d+$/.test(key) ? Number(key) : key));
  return parts[0] === 'spec' ? parts.slice(1) : parts;
}

/** What the API server says against a resource, as problems of its fields. Pure. */
import type { SpecProblem } from '../../../schema/slot-spec.ts';

/** Where the next field of a list begins: `, spec.model.default: `. */
const NEXT_FIELD = /, (?=(?:<nil>|(?:spec|metadata|status)(?:\.[\w-]+|\[[^\]]*\])*): )/;

/** Stands beside other problems, and says only that there may be more. */
const NOT_CHECKED = 'some validation rules were not checked because the object was invalid';

/** `SlotSpec.inference.svc.dev "img" is invalid: [spec.model.default: Required value, spec.priority: Invalid value: 5000: …]` */
export function readRefusal(message: string): readonly SpecProblem[] {
  const text = message.replace(/^.*? is invalid: /s, '');
  const list = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const problems = list.split(NEXT_FIELD).map(readProblem);
  const telling = problems.filter((problem) => !problem.message.includes(NOT_CHECKED));
  return telling.length === 0 ? problems : telling;
}

function readProblem(text: string): SpecProblem {
  const [whole, field] = /^(<nil>|(?:spec|metadata|status)(?:\.[\w-]+|\[[^\]]*\])*): /.exec(text) ?? [];
  if (whole === undefined || field === undefined) return { path: [], message: text, style: 'camelCase' };
  return { path: pathOf(field), message: text.slice(whole.length), style: 'camelCase' };
}

/** As the schema of a slot has it: without `spec`, which only the resource has. */
function pathOf(field: string): readonly (string | number)[] {
  const parts = [...field.matchAll(/([\w-]+)|\[([^\]]*)\]/g)].map(([, name, key]) => name ?? partOf(key ?? ''));
  if (field === '<nil>') return [];
  return parts[0] === 'spec' ? parts.slice(1) : parts;
}

function partOf(key: string): string | number {
  return /^\d+$/.test(key) ? Number(key) : key;
}

/** Validates answers against the schemas in a published OpenAPI document. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isTable } from '../../../src/schema/words/key-case.ts';

export interface SeenAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Returns the problems of an answer to the operation; none if the document describes it completely. */
export type CheckAnswer = (method: string, path: string, answer: SeenAnswer) => readonly string[];

/** `document` as it was published. Objects are checked as closed ones, so that an answer with a field that is not documented is a problem. */
export function createAnswerChecker(document: unknown): CheckAnswer {
  const closed = closeComponents(document);
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ $id: 'api', ...closed });

  return (method, path, { status, headers, text }) => {
    const responses = ['paths', path, method.toLowerCase(), 'responses'];
    const exact = at(closed, [...responses, String(status)]);
    const operation = [...responses, exact === undefined ? 'default' : String(status)];
    const declared = exact ?? at(closed, operation);
    if (declared === undefined) return [`status ${status} is not documented: ${text.slice(0, 200)}`];
    const { $ref: reference } = declared;
    const pointer = typeof reference === 'string' ? reference.slice(2).split('/') : operation;
    const answer = at(closed, pointer) ?? {};
    const { content } = answer;
    const problems = missingHeaders(answer, headers);
    if (!isTable(content)) return text === '' ? problems : [...problems, 'a body is not documented'];
    const mediaType = headers['content-type']?.split(';', 1)[0] ?? '';
    if (content[mediaType] === undefined) return [...problems, `media type "${mediaType}" is not documented`];
    const body: unknown = mediaType === 'application/json' ? JSON.parse(text) : text;
    const uri = `api#/${[...pointer, 'content', mediaType, 'schema'].map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;
    const validate = ajv.getSchema(uri);
    if (validate === undefined) return [...problems, `no schema at ${uri}`];
    return validate(body) === true ? problems : [...problems, `${ajv.errorsText(validate.errors)} in ${text.slice(0, 500)}`];
  };
}

/** `x-request-id` is on every answer; the others are documented where they can occur. */
function missingHeaders({ headers: documented }: Readonly<Record<string, unknown>>, sent: SeenAnswer['headers']): readonly string[] {
  const names = new Set(Object.keys(isTable(documented) ? documented : {}).map((name) => name.toLowerCase()));
  const problems = sent['x-request-id'] === undefined || !names.has('x-request-id') ? ['x-request-id is missing'] : [];
  const notable = ['etag', 'retry-after', 'x-should-retry', 'www-authenticate', 'x-svc-workload'];
  return [
    ...problems,
    ...notable.filter((name) => sent[name] !== undefined && !names.has(name)).map((name) => `header "${name}" is not documented`),
  ];
}

function at(value: unknown, path: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  const found = path.reduce((inner, key) => (isTable(inner) ? inner[key] : undefined), value);
  return isTable(found) ? found : undefined;
}

function closeComponents(document: unknown): Readonly<Record<string, unknown>> {
  if (!isTable(document) || !isTable(document['components'])) throw new Error('This is not an OpenAPI document');
  const { components } = document;
  return { ...document, components: { ...components, schemas: close(components['schemas']) } };
}

function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close);
  if (!isTable(value)) return value;
  const inner = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, close(part)]));
  return value['type'] === 'object' && isTable(value['properties']) && value['additionalProperties'] === undefined
    ? { ...inner, additionalProperties: false }
    : inner;
}

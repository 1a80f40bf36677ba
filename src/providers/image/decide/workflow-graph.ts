/** A workflow as ComfyUI's API takes it: nodes by id, each with its class and inputs. Pure. */

/** The output of another node: its id, and the number of the output. */
export type Link = readonly [node: string, output: number];
/** `bigint` for seeds, which are exact up to 2^64 in JSON and not in a JavaScript number. */
export type Scalar = string | number | bigint | boolean;
export type NodeInput = Scalar | Link;

export interface WorkflowNode {
  readonly class_type: string;
  readonly inputs: Readonly<Record<string, unknown>>;
}

export type Workflow = Readonly<Record<string, WorkflowNode>>;

export function node(className: string, inputs: Readonly<Record<string, NodeInput>>): WorkflowNode {
  return { class_type: className, inputs };
}

export function isScalar(value: unknown): value is Scalar {
  return ['string', 'number', 'bigint', 'boolean'].includes(typeof value);
}

/** Whether the value of an input is the output of another node. */
export function isLink(value: unknown): value is Link {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && Number.isInteger(value[1]);
}

/** The node of a cycle that is found first; undefined if there is none. Links to nodes that do not exist are ignored. */
export function nodeInCycle(workflow: Workflow): string | undefined {
  const users = new Map<string, string[]>();
  const missing = new Map<string, number>();
  for (const [id, { inputs }] of Object.entries(workflow)) {
    const sources = Object.values(inputs).flatMap((value) => (isLink(value) && Object.hasOwn(workflow, value[0]) ? [value[0]] : []));
    missing.set(id, sources.length);
    for (const source of sources) {
      const known = users.get(source);
      if (known === undefined) users.set(source, [id]);
      else known.push(id);
    }
  }
  // What needs nothing is computed first, and then what needs only that.
  const ready = [...missing].flatMap(([id, count]) => (count === 0 ? [id] : []));
  for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
    missing.delete(id);
    for (const user of users.get(id) ?? []) {
      const left = (missing.get(user) ?? 0) - 1;
      missing.set(user, left);
      if (left === 0) ready.push(user);
    }
  }
  // Also what only depends on a cycle is left: go back until a node comes again.
  const seen = new Set<string>();
  let at = missing.keys().next().value;
  while (at !== undefined && !seen.has(at)) {
    seen.add(at);
    const sources = Object.values(workflow[at]?.inputs ?? {}).flatMap((value) => (isLink(value) ? [value[0]] : []));
    at = sources.find((source) => missing.has(source));
  }
  return at;
}

/** Boards for tests of the request path: slots as a pass publishes them, without a reconciler. */
import type { ModelContents, ModelFacts, Voice } from '../../../src/providers/provider.ts';
import type { Admission, Board, BoardSlot, BoardView, Target } from '../../../src/reconciler/board.ts';
import { ModelId, SlotName, WorkloadId } from '../../../src/schema/words/names.ts';
import type { Capability } from '../../../src/schema/slot/provider-kinds.ts';
import { presetNames } from '../../../src/schema/slot/presets.ts';
import { parseSlot, type SlotDocument, type SlotSpec } from '../../../src/schema/slot/slot-spec.ts';
import type { SlotState } from '../../../src/schema/status/slot-status.ts';

export interface SlotSketch {
  readonly name: string;
  readonly model?: string;
  readonly aliases?: readonly string[];
  readonly presets?: NonNullable<SlotDocument['model']['presets']>;
  readonly fallback?: SlotDocument['fallback'];
  readonly limits?: SlotDocument['limits'];
  readonly capabilities?: readonly Capability[];
  readonly voices?: readonly Voice[];
  /** What is known of the files of its model. */
  readonly contents?: ModelContents;
  readonly admission?: Admission;
  readonly targets?: readonly { readonly workload: string; readonly port: number }[];
  /** Default: "ready" with targets, else "starting". */
  readonly state?: SlotState;
}

export const PARK: Admission = { kind: 'park' };
export const OPEN: Admission = { kind: 'open' };
export const DISABLED: Admission = { kind: 'refuse', code: 'slot.disabled', message: 'Enable slot "primary" first' };

export function slotName(text: string): SlotName {
  return SlotName.parse(text);
}

export function workloadId(text: string): WorkloadId {
  return WorkloadId.parse(text);
}

export function boardSlot(sketch: SlotSketch): BoardSlot {
  const name = slotName(sketch.name);
  const model = sketch.model ?? `${sketch.name}-model`;
  const spec = specOf(name, model, sketch);
  const targets = (sketch.targets ?? []).map(({ workload, port }): Target => ({
    workload: workloadId(workload),
    endpoint: { host: '127.0.0.1', port },
  }));
  const admission = sketch.admission ?? (targets.length > 0 ? OPEN : PARK);
  return {
    name,
    capabilities: sketch.capabilities ?? ['chat', 'completion', 'embedding', 'rerank'],
    ...(sketch.voices === undefined ? {} : { voices: sketch.voices }),
    ...(sketch.contents === undefined ? {} : { model: factsOf(spec, sketch.contents) }),
    admission,
    targets: admission.kind === 'open' ? targets : [],
    status: {
      name,
      state: sketch.state ?? (admission.kind === 'open' ? 'ready' : 'starting'),
      conditions: [],
      observedGeneration: 1,
      provider: 'gguf',
      backend: 'cpu',
      model: spec.model.default,
      restarts: 0,
      since: 0,
    },
    spec,
    generation: 1,
    problems: [],
    explain: () => '',
  };
}

export function boardView(version: number, sketches: readonly SlotSketch[]): BoardView {
  const slots = sketches.map(boardSlot);
  const names = new Map<string, SlotName[]>();
  for (const slot of slots) names.set(slot.name, [slot.name]);
  for (const slot of slots) {
    const { default: id, ...own } = slot.spec.model;
    for (const name of [id, ...own.aliases, ...presetNames({ ...own, name: slot.name }).map(([each]) => each)]) {
      const known = names.get(name) ?? [];
      if (!known.includes(slot.name)) names.set(name, [...known, slot.name]);
    }
  }
  return { version, at: version, slots: new Map(slots.map((slot) => [slot.name, slot])), names, refused: new Map() };
}

export function publish(board: Board, ...sketches: readonly SlotSketch[]): BoardView {
  const view = boardView(board.current().version + 1, sketches);
  board.publish(view);
  return view;
}

function factsOf({ model: { default: id } }: SlotSpec, contents: ModelContents): ModelFacts {
  return { id: ModelId.parse(id), hostPath: `/models/${id}`, sizeBytes: 1, contents };
}

function specOf(
  name: SlotName,
  model: string,
  { aliases = [], presets = {}, fallback, limits }: Pick<SlotSketch, 'aliases' | 'presets' | 'fallback' | 'limits'>,
): SlotSpec {
  const own = { ...(fallback === undefined ? {} : { fallback }), ...(limits === undefined ? {} : { limits }) };
  const parsed = parseSlot(name, { provider: 'gguf', backend: 'cpu', model: { default: model, aliases: [...aliases], presets }, ...own });
  if (!parsed.ok) throw new Error(parsed.problems.map((problem) => problem.message).join('; '));
  return parsed.spec;
}

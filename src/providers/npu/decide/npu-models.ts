/** Models that FastFlowLM brings itself (`flm list --json`), and their properties. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { ModelId } from '../../../schema/words/names.ts';
import type { ModelFacts, ModelTraits, OwnModel } from '../../provider.ts';

/** Models that the server loads beside any chat model; the program fixes their names. */
export const EMBEDDER = 'embed-gemma:300m';
export const LISTENER = 'whisper-v3:turbo';

export type NpuTask = 'chat' | 'embedding' | 'transcription';

const Count = z.number().min(0).max(1e15).optional().catch(undefined);

/** May come from another version, so it is checked each time. */
const Contents = z.looseObject({
  task: z.enum(['chat', 'embedding', 'transcription']),
  embeds: z.boolean().catch(false),
  transcribes: z.boolean().catch(false),
  context: Count,
  footprintBytes: Count,
  quantization: z.string().max(100).optional().catch(undefined),
  thinks: z.boolean().catch(false),
  sees: z.boolean().catch(false),
});
export type NpuContents = Readonly<z.output<typeof Contents>>;

const Details = z
  .object({ family: z.string().max(100), quantization_level: z.string().max(100), think: z.boolean() })
  .partial()
  .catch({});
const Entry = z.object({
  name: z.string(),
  installed: z.boolean().catch(false),
  size: z.number().min(0).catch(0),
  default_context_length: Count,
  footprint: Count,
  label: z.array(z.string()).catch([]),
  vlm: z.boolean().catch(false),
  details: Details.default({}),
});
type Entry = z.output<typeof Entry>;
const Listing = z.object({ models: z.array(z.unknown()) });

const BYTES_PER_GB = 1e9;

/** Parses `flm list --json`, which may print warnings first. Undefined: not a list. Unusable entries are left out. */
export function parseModelList(output: string): readonly OwnModel[] | undefined {
  const start = output.search(/^\s*\{/m);
  const listing = start === -1 ? undefined : Listing.safeParse(parseJson(output.slice(start))).data;
  if (listing === undefined) return undefined;
  const entries = listing.models.flatMap((each) => Entry.safeParse(each).data ?? []);
  const isInstalled = (name: string): boolean => entries.some((entry) => entry.name === name && entry.installed);
  const beside = { embeds: isInstalled(EMBEDDER), transcribes: isInstalled(LISTENER) };
  return entries.flatMap((entry) => {
    const id = ModelId.safeParse(entry.name).data;
    return id === undefined ? [] : [ownModel(id, entry, beside)];
  });
}

function ownModel(id: ModelId, entry: Entry, beside: Pick<NpuContents, 'embeds' | 'transcribes'>): OwnModel {
  const { footprint, details, default_context_length: context } = entry;
  const contents: NpuContents = {
    task: taskOf(entry),
    ...beside,
    context,
    footprintBytes: footprint === undefined ? undefined : footprint * BYTES_PER_GB,
    quantization: details.quantization_level,
    thinks: details.think ?? false,
    sees: entry.vlm,
  };
  return {
    id,
    sizeBytes: entry.size,
    contents: Object.fromEntries(Object.entries(contents).filter(([, value]) => value !== undefined)),
    ...(details.family === undefined ? {} : { family: details.family }),
    ...(entry.installed
      ? {}
      : {
          missing: `The weights of "${id}" are not here; fetch them with "flm pull ${id}", or build a toolbox image with them ("svcctl toolbox build npu npu")`,
        }),
  };
}

/** The list has no field for the task. */
function taskOf({ name, label }: Entry): NpuTask {
  if (label.includes('embeddings') || name.includes('embed')) return 'embedding';
  return label.includes('transcription') || name.includes('whisper') ? 'transcription' : 'chat';
}

export const npuContents = ({ provider, contents }: Pick<ModelFacts, 'provider' | 'contents'>): NpuContents | undefined =>
  provider === 'npu' ? Contents.safeParse(contents).data : undefined;

export function describeContents(contents: unknown): ModelTraits {
  const known = Contents.safeParse(contents).data;
  if (known === undefined) return {};
  const thinking = known.thinks ? (['thinking'] as const) : [];
  const vision = known.sees ? (['vision'] as const) : [];
  return { quantization: known.quantization, context: known.context, abilities: [...thinking, ...vision] };
}

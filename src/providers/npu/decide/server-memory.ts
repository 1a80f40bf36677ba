/** The memory that FastFlowLM needs. The NPU computes in the memory of the host, so all of it is that of the host. Pure. */
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { MemoryDemand, ModelFacts } from '../../provider.ts';
import { npuContents } from './npu-models.ts';
import { capabilitiesOf } from './npu-command.ts';

/** What the server itself adds to the size of its model when it sets the limit of the memory that it locks, for each of the two others and for itself. */
const LISTENER_BYTES = 1e9;
const EMBEDDER_BYTES = 300e6;
const SERVER_BYTES = 512e6;
/** Of a token of the context, beyond the context that is in the footprint: keys and values of a model with 8 thousand million weights in 16 bits. Not measured. */
const TOKEN_BYTES = 128 * 1024;
const USUAL_CONTEXT = 4096;

export function serverMemory(spec: SlotSpec, model: ModelFacts): MemoryDemand {
  const known = npuContents(model);
  const serves = capabilitiesOf(spec, model);
  const beside = known?.task === 'chat' ? serves : [];
  const context = Math.max(0, (spec.model.context ?? 0) - (known?.context ?? USUAL_CONTEXT));
  const hostBytes =
    Math.max(model.sizeBytes, known?.footprintBytes ?? 0) +
    context * TOKEN_BYTES +
    SERVER_BYTES +
    (beside.includes('transcription') ? LISTENER_BYTES : 0) +
    (beside.includes('embedding') ? EMBEDDER_BYTES : 0);
  return { hostBytes, deviceBytes: 0 };
}

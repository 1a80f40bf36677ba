/** Whether any discrete device of the machine is as large as a model requires. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';

/** `leastBytes`: what the model requires in total. `largestBytes`: what the largest device has. Undefined where one of them is not known, or where it is enough. */
export function tooSmallFor(model: string, leastBytes: number | undefined, largestBytes: number | undefined): Finding | undefined {
  if (leastBytes === undefined || largestBytes === undefined || largestBytes >= leastBytes) return undefined;
  const message = `Choose a smaller model, or a GPU with more memory: "${model}" needs one with at least ${formatGigabytes(leastBytes)}, and the largest here has ${formatGigabytes(largestBytes)}`;
  return { reason: 'DeviceTooSmall', message };
}

/** As GPUs are sold. */
function formatGigabytes(bytes: number): string {
  return `${Math.round(bytes / 1e8) / 10} GB`;
}

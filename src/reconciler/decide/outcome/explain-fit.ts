/** The answer to whether a model fits, in words. Pure. */
import { formatSize } from '../../../schema/words/quantities.ts';
import { HOST } from '../facts/memory-pools.ts';
import type { Fit, PoolShare } from '../fit.ts';

export interface FitWords {
  readonly model: string;
  /** As asked for; undefined: that of the model. */
  readonly context: number | undefined;
  readonly backend: string;
}

export function explainFit(
  { model, context, backend }: FitWords,
  { fits, fitsNow, decisive, largestContext, dependsOnContext }: Fit,
): string {
  const size = !dependsOnContext ? '' : context === undefined ? ' with its own context' : ` with a context of ${context} tokens`;
  const needs = `it needs ${formatSize(decisive.neededBytes)} ${placeText(decisive)}`;
  if (decisive.roomBytes === undefined) return `"${model}" ${needs}${size} on "${backend}"; how much memory there is here is not known`;
  const room = `${formatSize(decisive.roomBytes)} are there for slots`;
  if (fitsNow) return `"${model}" fits${size} on "${backend}": ${needs}, and ${room}${promisedText(decisive)}`;
  if (fits) {
    const giveWay = 'It fits once other slots give way: idle ones that load on demand do so by themselves';
    return `"${model}" does not fit${size} on "${backend}" beside what the slots have now: ${needs}, and ${room}${promisedText(decisive)}. ${giveWay}`;
  }
  const advice =
    largestContext === undefined
      ? `Choose a smaller model or quantisation${dependsOnContext ? ': no context is small enough' : ''}`
      : `Set a context of ${largestContext} tokens or less, with which it fits`;
  return `"${model}" does not fit${size} on "${backend}": ${needs}, and ${room}. ${advice}`;
}

function placeText({ pool }: PoolShare): string {
  return pool === HOST ? 'of the memory of the host' : `of the memory of device "${pool}"`;
}

function promisedText({ promisedBytes }: PoolShare): string {
  return promisedBytes === 0 ? '' : `, of which slots have ${formatSize(promisedBytes)} now`;
}

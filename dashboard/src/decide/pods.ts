/** What is shown of a pod. Pure. */
import type { Pod } from '../types.ts';

/** How a pod is, in one word; `tone` is the class of its tag. */
export function describePod({ terminating, ready, reason, phase }: Pod): { readonly word: string; readonly tone: 'good' | 'bad' | '' } {
  if (terminating) return { word: 'Terminating', tone: '' };
  if (ready) return { word: 'Ready', tone: 'good' };
  if (reason !== null) return { word: reason, tone: 'bad' };
  return { word: phase, tone: phase === 'Failed' ? 'bad' : '' };
}

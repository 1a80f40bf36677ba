/**
 * Every state by every state: what brings the move about, or `never`. A pass sees the world at moments, so a move may skip states that
 * lasted shorter than the time between two passes. It never skips `warming`: only a pass that saw a workload has it probed, and only a
 * pass that published it lets requests in.
 */
import type { SlotState } from '../../../schema/slot-status.ts';

export type Move = string;

export const MOVES = {
  offline: {
    offline: 'stays',
    pulling: 'it is wanted, and its image or model is missing',
    starting: 'it is wanted, and all it needs is there',
    warming: 'a workload of it appeared from outside',
    ready: 'never',
    serving: 'never',
    idle: 'never',
    unloading: 'a workload of it appeared that nobody wants',
  },
  pulling: {
    offline: 'the pull failed, or it is no longer wanted',
    pulling: 'stays',
    starting: 'all it needs is there',
    warming: 'a workload of it appeared from outside',
    ready: 'never',
    serving: 'never',
    idle: 'never',
    unloading: 'a workload of it appeared that nobody wants',
  },
  starting: {
    offline: 'the start failed, or the workload ended at once',
    pulling: 'its runtime fetches what it needs, an edit asks for something else, or what it needs disappeared',
    starting: 'stays',
    warming: 'its process runs',
    ready: 'never',
    serving: 'never',
    idle: 'never',
    unloading: 'it is no longer wanted, or must start anew',
  },
  warming: {
    offline: 'its process ended',
    pulling: 'its process ended, and what it needs is missing or fetched anew',
    starting: 'its process ended, and a new one starts at once',
    warming: 'stays',
    ready: 'its probe passed',
    serving: 'it had no replica that was ready for a while, and requests are in flight',
    idle: 'it had no replica that was ready for a while',
    unloading: 'it is no longer wanted, was edited, or took too long',
  },
  ready: {
    offline: 'its process ended',
    pulling: 'its process ended, and what it needs is missing or fetched anew',
    starting: 'its process ended, and a new one starts at once',
    warming: 'its process ended, and the next one already runs, or no replica of it is ready',
    ready: 'stays',
    serving: 'a request came',
    idle: 'a request came and ended',
    unloading: 'it is no longer wanted, is replaced, or stopped serving',
  },
  serving: {
    offline: 'its process ended',
    pulling: 'its process ended, and what it needs is missing or fetched anew',
    starting: 'its process ended, and a new one starts at once',
    warming: 'its process ended, and the next one already runs, or no replica of it is ready',
    ready: 'another workload of it took over',
    serving: 'stays',
    idle: 'the last request ended',
    unloading: 'it is no longer wanted, is replaced, or stopped serving',
  },
  idle: {
    offline: 'its process ended',
    pulling: 'its process ended, and what it needs is missing or fetched anew',
    starting: 'its process ended, and a new one starts at once',
    warming: 'its process ended, and the next one already runs, or no replica of it is ready',
    ready: 'another workload of it took over',
    serving: 'a request came',
    idle: 'stays',
    unloading: 'it is no longer wanted, is replaced, or stopped serving',
  },
  unloading: {
    offline: 'its workload is gone',
    pulling: 'its workload is gone, and what the next one needs is missing',
    starting: 'its workload is gone, and the next one starts',
    warming: 'the next one already runs, or the edit was taken back',
    ready: 'the edit was taken back',
    serving: 'the edit was taken back, and requests are in flight',
    idle: 'the edit was taken back',
    unloading: 'stays',
  },
} as const satisfies Record<SlotState, Record<SlotState, Move>>;

/** Whether a slot may be seen in `to` by the pass after one that saw it in `from`. */
export function mayMove(from: SlotState, to: SlotState): boolean {
  return MOVES[from][to] !== 'never';
}

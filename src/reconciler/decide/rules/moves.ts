/**
 * All moves from one state to another, with what causes each, or `never`. A move may skip states that began and ended
 * between two passes. It never skips `warming`: only a pass that has seen a workload has it probed, and only a pass
 * that has published it lets requests in. Pure.
 */
import type { SlotState } from '../../../schema/status/slot-status.ts';

export const MOVES = {
  offline: {
    offline: 'stays',
    pulling: 'it is wanted, and its image or model is missing',
    starting: 'it is wanted, and everything it needs is there',
    warming: 'a workload of it appeared from outside',
    ready: 'never',
    serving: 'never',
    idle: 'never',
    unloading: 'an unwanted workload of it appeared',
  },
  pulling: {
    offline: 'the pull failed, or it is no longer wanted',
    pulling: 'stays',
    starting: 'everything it needs is there',
    warming: 'a workload of it appeared from outside',
    ready: 'never',
    serving: 'never',
    idle: 'never',
    unloading: 'an unwanted workload of it appeared',
  },
  starting: {
    offline: 'the start failed, or the workload ended at once',
    pulling: 'its runtime fetches what it needs, an edit asks for something else, or what it needs disappeared',
    starting: 'stays',
    warming: 'its process runs',
    ready: 'never',
    serving: 'never',
    idle: 'never',
    unloading: 'it is no longer wanted, or must start again',
  },
  warming: {
    offline: 'its process ended',
    pulling: 'its process ended, and what it needs is missing or fetched again',
    starting: 'its process ended, and a new one starts at once',
    warming: 'stays',
    ready: 'its probe passed',
    serving: 'it had no ready replica for a while, and requests are in flight',
    idle: 'it had no ready replica for a while',
    unloading: 'it is no longer wanted, was edited, or took too long',
  },
  ready: {
    offline: 'its process ended',
    pulling: 'its process ended, and what it needs is missing or fetched again',
    starting: 'its process ended, and a new one starts at once',
    warming: 'its process ended and the next one runs already, or no replica of it is ready',
    ready: 'stays',
    serving: 'a request arrived',
    idle: 'a request arrived and ended',
    unloading: 'it is no longer wanted, is replaced, or stopped serving',
  },
  serving: {
    offline: 'its process ended',
    pulling: 'its process ended, and what it needs is missing or fetched again',
    starting: 'its process ended, and a new one starts at once',
    warming: 'its process ended and the next one runs already, or no replica of it is ready',
    ready: 'another workload of it took over',
    serving: 'stays',
    idle: 'the last request ended',
    unloading: 'it is no longer wanted, is replaced, or stopped serving',
  },
  idle: {
    offline: 'its process ended',
    pulling: 'its process ended, and what it needs is missing or fetched again',
    starting: 'its process ended, and a new one starts at once',
    warming: 'its process ended and the next one runs already, or no replica of it is ready',
    ready: 'another workload of it took over',
    serving: 'a request arrived',
    idle: 'stays',
    unloading: 'it is no longer wanted, is replaced, or stopped serving',
  },
  unloading: {
    offline: 'its workload is gone',
    pulling: 'its workload is gone, and what the next one needs is missing',
    starting: 'its workload is gone, and the next one starts',
    warming: 'the next one already runs, or the edit was reverted',
    ready: 'the edit was reverted',
    serving: 'the edit was reverted, and requests are in flight',
    idle: 'the edit was reverted',
    unloading: 'stays',
  },
} as const satisfies Record<SlotState, Record<SlotState, string>>;

/** Whether a pass may find a slot in `to` after the previous pass found it in `from`. */
export const mayMove = (from: SlotState, to: SlotState): boolean => MOVES[from][to] !== 'never';

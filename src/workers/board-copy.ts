/** The board of a worker, which follows that of the controller. */
import type { RoutedBoard, RoutedView } from '../reconciler/board.ts';
import { applyBoardChange, NO_BOARD, type BoardChange } from '../turbo/workers/decide/board-changes.ts';

export interface BoardCopy extends RoutedBoard {
  change(change: BoardChange): void;
}

export function createBoardCopy(first: BoardChange | undefined): BoardCopy {
  let view = first === undefined ? NO_BOARD : applyBoardChange(NO_BOARD, first);
  const listeners = new Set<(view: RoutedView) => void>();
  return {
    current: () => view,
    change(change) {
      view = applyBoardChange(view, change);
      for (const listener of listeners) listener(view);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

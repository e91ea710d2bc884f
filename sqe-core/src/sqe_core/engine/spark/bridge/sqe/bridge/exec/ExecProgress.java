package sqe.bridge.exec;

/** How far one statement is. */
final class ExecProgress {
  private int stages;
  private int stagesDone;
  private int tasks;
  private int tasksDone;
  private int tasksActive;

  synchronized void stageStarted(int count) {
    stages++;
    tasks += count;
  }

  synchronized void stageEnded() {
    stagesDone++;
  }

  synchronized void taskStarted() {
    tasksActive++;
  }

  synchronized void taskEnded(boolean successful) {
    tasksActive--;
    if (successful) tasksDone++;
  }

  /** Numbers with commas between, since py4j fetches each number of an array with a call of its own. */
  synchronized String text() {
    return stages + "," + stagesDone + "," + tasks + "," + tasksDone + "," + tasksActive;
  }
}

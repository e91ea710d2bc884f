package sqe.bridge;

import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.StageInfo;

/** Counts stages and tasks for each statement, and tells its result which attempts are lost. */
final class ExecListener extends SparkListener {
  private final ConcurrentHashMap stages = new ConcurrentHashMap(); // stage id -> Exec

  public void onJobStart(SparkListenerJobStart event) {
    Exec statement = statement(event.properties());
    if (statement == null) return;
    scala.collection.Iterator infos = event.stageInfos().iterator();
    while (infos.hasNext()) stages.put(Integer.valueOf(((StageInfo) infos.next()).stageId()), statement);
    // A job that began between the cancel and the end of its thread.
    if (Running.isCancelled(statement.tag)) StreamHub.cancelJobs(statement.tag);
  }

  private static Exec statement(Properties properties) {
    String tags = properties == null ? null : properties.getProperty("spark.job.tags");
    if (tags == null) return null;
    String[] each = tags.split(",");
    for (int i = 0; i < each.length; i++) {
      Exec statement = Exec.find(each[i]);
      if (statement != null) return statement;
    }
    return null;
  }

  public void onStageSubmitted(SparkListenerStageSubmitted event) {
    Exec statement = statement(event.stageInfo().stageId());
    if (statement != null) statement.progress.stageStarted(event.stageInfo().numTasks());
  }

  public void onStageCompleted(SparkListenerStageCompleted event) {
    Exec statement = (Exec) stages.remove(Integer.valueOf(event.stageInfo().stageId()));
    if (statement != null) statement.progress.stageEnded();
  }

  public void onTaskStart(SparkListenerTaskStart event) {
    Exec statement = statement(event.stageId());
    if (statement == null) return;
    statement.progress.taskStarted();
    if (event.taskInfo() != null) Watchdog.taskStarted(event.taskInfo().taskId(), statement.tag);
  }

  public void onTaskEnd(SparkListenerTaskEnd event) {
    // A task may go on for long after its stage is over.
    if (event.taskInfo() != null) Watchdog.taskEnded(event.taskInfo().taskId());
    Exec statement = statement(event.stageId());
    if (statement == null || event.taskInfo() == null) return;
    boolean successful = event.taskInfo().successful();
    statement.progress.taskEnded(successful);
    if (!successful) statement.sink.lost(event.taskInfo().partitionId(), event.taskInfo().taskId());
  }

  private Exec statement(int stage) {
    return (Exec) stages.get(Integer.valueOf(stage));
  }
}

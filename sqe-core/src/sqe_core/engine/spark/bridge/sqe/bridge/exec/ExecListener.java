package sqe.bridge.exec;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.StageInfo;
import sqe.bridge.stream.StreamHub;

/** Counts stages and tasks for each statement, and tells its result which attempts are lost. */
public final class ExecListener extends SparkListener {
  private static final int REMEMBERED = 4096;

  private final ConcurrentHashMap stages = new ConcurrentHashMap(); // stage id -> Exec

  /** stage id -> tag, of jobs that began when their statement was over; a task may begin when its stage is over, too. */
  private final Map late =
      Collections.synchronizedMap(
          new LinkedHashMap() {
            protected boolean removeEldestEntry(Map.Entry eldest) {
              return size() > REMEMBERED;
            }
          });

  public void onJobStart(SparkListenerJobStart event) {
    String[] tags = tags(event.properties());
    for (int i = 0; i < tags.length; i++) {
      Exec statement = Exec.find(tags[i]);
      boolean cancelled = Running.isCancelled(tags[i]);
      if (statement == null && !cancelled) continue;
      scala.collection.Iterator infos = event.stageInfos().iterator();
      while (infos.hasNext()) {
        Integer stage = Integer.valueOf(((StageInfo) infos.next()).stageId());
        if (statement != null) stages.put(stage, statement);
        if (cancelled) late.put(stage, tags[i]);
      }
      // A job that began between the cancel and the end of its thread.
      if (cancelled) StreamHub.cancelJobs(tags[i]);
      return;
    }
  }

  private static String[] tags(Properties properties) {
    String tags = properties == null ? null : properties.getProperty("spark.job.tags");
    return tags == null ? new String[0] : tags.split(",");
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
    if (statement != null) statement.progress.taskStarted();
    String tag = statement != null ? statement.tag : (String) late.get(Integer.valueOf(event.stageId()));
    if (tag != null && event.taskInfo() != null) Watchdog.taskStarted(event.taskInfo().taskId(), tag);
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
